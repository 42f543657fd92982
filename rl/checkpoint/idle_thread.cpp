#include "rl/checkpoint/idle_thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rl {

// Linux keeps a nice value for each thread. Not the last one, 19, nor SCHED_IDLE: on a machine that
// others fill a checkpoint would not be done when the next one is due.
void give_way() {
  constexpr int kNice = 10;  // about a tenth of the turns of a core that training wants, too; all
                             // of one that it leaves
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kNice);
}

}  // namespace rl
