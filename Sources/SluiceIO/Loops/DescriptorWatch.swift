import CLinux
import Glibc

/// Calls back on a loop whenever a foreign descriptor is readable, such as one that a library waits on.
///
/// Belongs to its loop. The owner of the descriptor ends the watch before closing it.
public final class DescriptorWatch {
  private let source: WatchSource

  /// - Throws: when the system has no room for another one.
  public init(
    _ descriptor: Int32, on loop: EpollLoop, whenReadable body: @escaping () -> Void
  ) throws(IOError) {
    source = WatchSource(loop: loop, descriptor: descriptor, body: body)
    try loop.register(source, for: .readable)
  }

  /// No handler is called after this.
  public func end() { source.release() }

  deinit { source.release() }
}

/// The descriptor isn't its own, and is never closed here.
private final class WatchSource: EventSource {
  private let body: () -> Void

  init(loop: EpollLoop, descriptor: Int32, body: @escaping () -> Void) {
    self.body = body
    super.init(loop: loop, descriptor: descriptor)
  }

  deinit { descriptor = -1 }

  override func ready(_ events: EpollEvents) { body() }

  override func loopStopped() { release() }

  func release() {
    loop.deregister(self)
    descriptor = -1
  }
}
