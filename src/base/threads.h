// A pool of pinned threads that all work on one thing at a time. Work is divided by position, never by who
// comes first, so results depend on the thread count alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace headway {

class ThreadPool {
 public:
  // The caller is thread 0; `threads - 1` more are started. With `pin` thread i stays on processor i of the
  // processors this process may use, until the pool is gone.
  explicit ThreadPool(int threads, bool pin = true);
  // A pool for threads that go their own ways between uses: workers are pinned, and a caller only while it has a
  // `Caller` of the pool.
  struct PinnedWorkers {};
  ThreadPool(int threads, PinnedWorkers);
  class Caller {
   public:
    explicit Caller(const ThreadPool& pool);
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    std::vector<int> before_;  // empty: nothing to undo
  };
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(thread) once on every thread and returns when all have. The first exception is rethrown here.
  // Not reentrant.
  void run(const std::function<void(int thread)>& work);

  // Divides [0, count) into size() contiguous ranges whose bounds are multiples of `grain`, and calls
  // work(begin, end, thread) for each that is not empty.
  void for_range(std::int64_t count, const std::function<void(std::int64_t, std::int64_t, int)>& work,
                 std::int64_t grain = 1);

  // Processors this process may use.
  static int available();

 private:
  void start(int threads, bool pin);
  void work_on(int thread);

  std::vector<std::thread> workers_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr error_;
  std::thread::id pinned_;  // the caller's, where it was pinned
};

}  // namespace headway
