/* Holds a pod's namespaces: sleeps until it is told to end, and reaps what is orphaned to it when it is the pod's first process. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
    (void)signal;
    _exit(0);
}

static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void) {
    struct sigaction ends = {.sa_handler = end};
    struct sigaction reaps = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
    if (sigaction(SIGINT, &ends, NULL) != 0 || sigaction(SIGTERM, &ends, NULL) != 0 || sigaction(SIGCHLD, &reaps, NULL) != 0) {
        return 1;
    }
    for (;;) {
        pause();
    }
}
