#if os(Linux)
  import CLinux
  import Synchronization

  // What a thread does when the lock is held by another.
  extension Lock {
    /// How often a thread looks at a lock before it sleeps: about as long as a critical section takes.
    private static var looks: Int { 60 }

    /// Takes the lock when it is free.
    @usableFromInline
    @inline(never)
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
    @usableFromInline
    @inline(never)
    package borrowing func wakeOne() {
      unsafe withUnsafePointer(to: word) { _ = unsafe sluice_futex_wake(UnsafeRawPointer($0), 1) }
    }
  }
#endif
