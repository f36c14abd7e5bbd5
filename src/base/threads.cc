#include "base/threads.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "base/error.h"

namespace headway {
namespace {

// Kernels follow each other within microseconds, so a waiting thread looks this often before it sleeps.
constexpr int kSpins = 20000;

// The processors this process may use, as they were before any thread was pinned: a pinned thread sees only
// its own.
const std::vector<int>& processors() {
  static const std::vector<int> found = [] {
    std::vector<int> list;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
      for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) list.push_back(i);
    }
    if (list.empty()) list.push_back(0);
    return list;
  }();
  return found;
}

void keep_on(pthread_t thread, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);  // a refusal costs speed, not correctness
}

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int ThreadPool::available() { return static_cast<int>(processors().size()); }

ThreadPool::ThreadPool(int threads, bool pin) {
  const std::vector<int>& cpus = processors();
  pin = pin && threads > 1 && threads <= static_cast<int>(cpus.size());
  start(threads, pin);
  if (pin) {
    keep_on(pthread_self(), {cpus[0]});
    pinned_ = std::this_thread::get_id();
  }
}

ThreadPool::ThreadPool(int threads, PinnedWorkers) {
  start(threads, threads <= static_cast<int>(processors().size()));
}

ThreadPool::Caller::Caller(const ThreadPool& pool) {
  const std::vector<int>& cpus = processors();
  if (pool.size() < 2 || pool.size() > static_cast<int>(cpus.size())) return;
  cpu_set_t set;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0) return;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) before_.push_back(i);
  keep_on(pthread_self(), {cpus[0]});
}

ThreadPool::Caller::~Caller() {
  if (!before_.empty()) keep_on(pthread_self(), before_);
}

void ThreadPool::start(int threads, bool pin) {
  HEADWAY_CHECK(threads >= 1);
  const std::vector<int>& cpus = processors();
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { work_on(i); });
    // Without `pin` too: a thread starts where its creator may run, and another pool may have pinned that.
    keep_on(workers_.back().native_handle(),
            pin ? std::vector<int>{cpus[static_cast<std::size_t>(i)]} : cpus);
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  if (pinned_ == std::this_thread::get_id()) keep_on(pthread_self(), processors());
}

void ThreadPool::work_on(int thread) {
  std::uint64_t seen = 0;
  while (true) {
    int spins = 0;
    while (generation_.load(std::memory_order_acquire) == seen && spins < kSpins) {
      pause();
      ++spins;
    }
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    try {
      (*work_)(thread);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(const std::function<void(int)>& work) {
  work_ = &work;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  if (!workers_.empty()) {
    {
      std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
  }
  std::exception_ptr own;
  try {
    work(0);
  } catch (...) {
    own = std::current_exception();
  }
  int spins = 0;
  while (pending_.load(std::memory_order_acquire) > 0) {
    if (++spins < kSpins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  std::exception_ptr error = own ? own : error_;
  error_ = nullptr;
  if (error) std::rethrow_exception(error);
}

void ThreadPool::for_range(std::int64_t count,
                           const std::function<void(std::int64_t, std::int64_t, int)>& work,
                           std::int64_t grain) {
  if (count <= 0) return;
  const std::int64_t blocks = (count + grain - 1) / grain;
  const std::int64_t parts = std::min<std::int64_t>(size(), blocks);
  if (parts == 1) {
    work(0, count, 0);
    return;
  }
  run([&](int thread) {
    if (thread >= parts) return;
    const std::int64_t begin = blocks * thread / parts * grain;
    const std::int64_t end = std::min(count, blocks * (thread + 1) / parts * grain);
    if (begin < end) work(begin, end, thread);
  });
}

}  // namespace headway
