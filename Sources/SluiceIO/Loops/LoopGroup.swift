import CLinux
import Glibc

/// The loops that share a program's connections.
public struct LoopGroup: Sendable {
  /// At least one.
  public let loops: [any EventLoop]

  public init(_ loops: [any EventLoop]) {
    precondition(!loops.isEmpty, "a loop group needs at least one loop")
    self.loops = loops
  }
}

extension LoopGroup {
  /// Starts `count` loops, each with a thread of its own; one per core that this process may use if none is given.
  ///
  /// - Throws: when the system has no more descriptors or threads; loops already started are stopped again.
  public static func threads(count: Int = availableCores, name: String = "loop") throws(IOError) -> LoopGroup
  {
    precondition(count > 0, "a loop group needs at least one loop")
    var loops: [EpollLoop] = []
    for index in 0..<count {
      do throws(IOError) {
        loops.append(try EpollLoop.start(name: "\(name)-\(index)"))
      } catch {
        for loop in loops { loop.stop() }
        for loop in loops { loop.join() }
        throw error
      }
    }
    return LoopGroup(loops)
  }

  /// Stops the group's loops and waits until they have ended. From a thread that isn't one of theirs.
  public func stopThreads() {
    for loop in loops { loop.stop() }
    for loop in loops { loop.join() }
  }

  /// The number of cores that this process may run on.
  public static var availableCores: Int {
    var set = cpu_set_t()
    let size = MemoryLayout<cpu_set_t>.size
    guard unsafe sched_getaffinity(0, size, &set) == 0 else {
      return max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    }
    let bits = unsafe withUnsafeBytes(of: &set) { bytes in unsafe bytes.reduce(0) { $0 + $1.nonzeroBitCount }
    }
    return max(1, bits)
  }
}
