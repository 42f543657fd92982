#include "tests/runtime/sharing/sharing_main.h"

int main(int argc, char** argv) { return runtime::test::sharing_main(argc, argv); }
