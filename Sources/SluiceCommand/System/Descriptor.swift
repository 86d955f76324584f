import Glibc

/// Writes to file descriptors, and names the system's errors.
public enum Descriptor {
  /// The system's text for an error number: "No such file or directory".
  public static func reason(_ code: Int32 = errno) -> String { unsafe String(cString: strerror(code)) }

  /// Writes all of `bytes`, and blocks until that is done.
  ///
  /// - Returns: 0, or the system's error number; `EPIPE` if there is no reader. A part of `bytes` may have been written then.
  public static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
    var rest = unsafe bytes
    while unsafe !rest.isEmpty {
      let count = unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count >= 0 {
        unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if errno == EAGAIN {
        // Another process has made the shared pipe or terminal non-blocking.
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&waiting, 1, -1)
      } else if errno != EINTR {
        return errno
      }
    }
    return 0
  }

  /// Writes all of `text`. Returns the same as ``writeAll(_:to:)``.
  @discardableResult
  public static func write(_ text: String, to descriptor: Int32) -> Int32 {
    var text = text
    return text.withUTF8 { unsafe writeAll(UnsafeRawBufferPointer($0), to: descriptor) }
  }
}
