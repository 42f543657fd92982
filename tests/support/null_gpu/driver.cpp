// The CUDA driver's library, libcuda.so.1, as far as LibTorch calls it by itself.
extern "C" {

int cuInit(unsigned) { return 0; }
int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  if (flags != nullptr) *flags = 0;
  *active = 1;
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "an error of the null GPU";
  return 0;
}
int cuCtxGetCurrent(void** context) {
  static int current;
  *context = &current;
  return 0;
}
int cuFuncSetAttribute(void*, int, int) { return 0; }

}  // extern "C"
