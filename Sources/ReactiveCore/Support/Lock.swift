#if os(Linux)
  import CLinux
#endif
import Synchronization

/// A mutex beside the fields it guards.
///
/// `Mutex<Value>` asks that what goes in and out may change hands between isolation regions. Operators hold the values,
/// subscribers and closures of their users, which need not be `Sendable`, so the lock holds nothing itself; each owner
/// says which of its fields it guards.
///
/// On Linux the lock is a word of its own rather than a `Mutex`. Releasing a `Mutex` that threads wait for hands it to one of them,
/// which holds it from then on although it doesn't run yet, so each critical section costs a switch of threads. This lock is free
/// when it is released: a running thread can take it at once, and a waiting thread tries again when it runs.
#if os(Linux)
  @usableFromInline
  package struct Lock: ~Copyable {
    /// `free`, `held`, or `contended`: held, and threads may sleep until it is released.
    @usableFromInline let word = Atomic<UInt32>(0)

    @inlinable static var free: UInt32 { 0 }
    @inlinable static var held: UInt32 { 1 }
    @inlinable static var contended: UInt32 { 2 }

    @inlinable package init() {}

    /// Runs the body alone. The body must be short and call nothing of the user's, releases of objects included.
    @inlinable @inline(__always)
    package borrowing func withLock<Result>(_ body: () -> Result) -> Result {
      if !word.compareExchange(expected: Self.free, desired: Self.held, ordering: .acquiring).exchanged {
        wait()
      }
      defer {
        if word.exchange(Self.free, ordering: .releasing) == Self.contended { wakeOne() }
      }
      return body()
    }
  }

  // How a thread waits for a lock that another thread holds.
  extension Lock {
    /// How often a thread looks at a lock before it sleeps: about as long as a critical section takes.
    private static var looks: Int { 60 }

    /// Takes the lock when it is free.
    @usableFromInline @inline(never)
    package borrowing func wait() {
      for _ in 0..<Self.looks {
        let state = word.load(ordering: .relaxed)
        // Threads that sleep have waited longer than looking is worth.
        if state == Self.contended { break }
        if state == Self.free,
          word.weakCompareExchange(expected: Self.free, desired: Self.held, ordering: .acquiring).exchanged
        {
          return
        }
        sluice_cpu_relax()
      }
      // From here on the word says `contended` whenever this thread sleeps or holds the lock: other threads may sleep too.
      while word.exchange(Self.contended, ordering: .acquiring) != Self.free {
        // The word has one address as long as it lives: an atomic isn't moved.
        unsafe withUnsafePointer(to: word) {
          // Returns at once if the word isn't `contended` any more; an early return is one more turn of the loop.
          _ = unsafe sluice_futex_wait(UnsafeRawPointer($0), Self.contended)
        }
      }
    }

    /// Wakes a thread that sleeps.
    @usableFromInline @inline(never)
    package borrowing func wakeOne() {
      unsafe withUnsafePointer(to: word) { _ = unsafe sluice_futex_wake(UnsafeRawPointer($0), 1) }
    }
  }
#else
  @usableFromInline
  package struct Lock: ~Copyable {
    @usableFromInline let mutex = Mutex<Void>(())

    @inlinable package init() {}

    /// Runs the body alone. The body must be short and call nothing of the user's, releases of objects included.
    @inlinable @inline(__always)
    package borrowing func withLock<Result>(_ body: () -> Result) -> Result {
      var result: Result?
      mutex.withLock { _ in result = body() }
      return unsafe result.unsafelyUnwrapped
    }
  }
#endif
