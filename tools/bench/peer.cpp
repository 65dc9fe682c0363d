#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <cutaway/core/error.h>

#include <peer_torch_script.h>
#include <tools/bench/sides.h>

extern char** environ;

namespace cutaway::tools {

std::string torch_script() { return kPeerTorchScript; }

Peer::Peer(const PeerOptions& options) : options_(options) {
  std::vector<std::string> candidates = {options.python};
  if (options.python.empty()) candidates = {"python3", "/usr/bin/python3"};
  for (const std::string& python : candidates) {
    if (start(python)) return;
  }
  throw IoError("bench",
                fmt::format("{} cannot run the peer script",
                            options.python.empty() ? "no python3" : options.python),
                "install PyTorch (Debian: python3-torch) or name another interpreter: --python "
                "PATH");
}

Peer::~Peer() { stop(); }

// One socket is standard input and output of the program: unlike a pipe it can be written to
// without a signal when the other end is gone.
bool Peer::start(const std::string& python) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw IoError("bench", fmt::format("no socket for the peer: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  // Several interpreters may be tried: only one that was asked for may complain.
  if (options_.python.empty()) {
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  }
  std::string words[] = {python, "-c", options_.script};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t process = -1;
  const int failed = posix_spawnp(&process, python.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  process_ = failed ? -1 : process;
  if (!failed) {
    try {
      version_ = read_line(options_.start_seconds);
    } catch (const IoError&) {
      version_.clear();
    }
  }
  if (!version_.empty()) return true;
  stop();
  return false;
}

void Peer::stop() {
  if (socket_ >= 0) {
    send(socket_, "quit\n", 5, MSG_NOSIGNAL);
    close(socket_);
  }
  if (process_ > 0) {
    // It ends at the end of its input, unless it is busy.
    for (int tries = 0; tries < 20 && waitpid(process_, nullptr, WNOHANG) == 0; ++tries) {
      poll(nullptr, 0, 50);
      if (tries == 19) {
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
      }
    }
  }
  socket_ = process_ = -1;
  buffer_.clear();
}

std::string Peer::read_line(int seconds) {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd ready{socket_, POLLIN, 0};
    const int found = poll(&ready, 1, seconds * 1000);
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) throw IoError("bench", fmt::format("the peer is silent for {} s", seconds));
    char bytes[4096];
    const ssize_t n = found < 0 ? -1 : recv(socket_, bytes, sizeof bytes, 0);
    if (n <= 0) throw IoError("bench", "the peer has ended");
    buffer_.append(bytes, size_t(n));
  }
}

std::string Peer::ask(const std::string& command, const BenchCase& c, int64_t n) {
  const std::string line =
      fmt::format("{} {} {} {} {}\n", command, c.workload, name_of(c.dtype), c.threads, n);
  if (send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != ssize_t(line.size())) {
    throw IoError("bench", "the peer has ended");
  }
  const std::string reply = read_line(options_.step_seconds);
  if (reply.starts_with("error ")) throw IoError("bench", "the peer fails: " + reply.substr(6));
  return reply;
}

std::vector<double> Peer::values(const BenchCase& c, int n) {
  const std::string reply = ask("losses", c, n);
  std::istringstream words(reply);
  std::string word;
  words >> word;
  std::vector<double> list;
  // strtod also reads the nan and inf that a peer may print.
  while (words >> word) list.push_back(std::strtod(word.c_str(), nullptr));
  if (!reply.starts_with("losses ") || int(list.size()) != n) {
    throw IoError("bench", fmt::format("the peer was asked for {} losses; got \"{}\"", n, reply));
  }
  return list;
}

RunResult Peer::run(const BenchCase& c, int64_t n) {
  const std::string reply = ask("run", c, n);
  std::istringstream words(reply);
  RunResult r;
  if (!(words >> r.ms >> r.peak)) {
    throw IoError("bench",
                  fmt::format("the peer was asked for a time and a peak; got \"{}\"", reply));
  }
  return r;
}

}  // namespace cutaway::tools
