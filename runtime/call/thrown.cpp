#include "runtime/call/thrown.h"

#include <string>

#include "runtime/core/check.h"

namespace runtime {

Status status_of(std::exception_ptr failure) {
  if (!failure)
    check_failed(__FILE__, __LINE__,
                 "a method ended a thread of the runtime: pthread_exit and pthread_cancel are for "
                 "its own threads");
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const std::exception& e) {
    const char* what = e.what();
    return task_failed(std::string("threw: ") +
                       (what ? what : "an exception that does not say what"));
  } catch (const Status& status) {
    return status.ok() ? task_failed("threw a Status that is ok") : status;
  } catch (const std::string& text) {
    return task_failed("threw: " + text);
  } catch (const char* text) {
    return task_failed(std::string("threw: ") + (text ? text : "a null pointer"));
  } catch (...) {
    return task_failed("threw something that is not a std::exception");
  }
}

}  // namespace runtime
