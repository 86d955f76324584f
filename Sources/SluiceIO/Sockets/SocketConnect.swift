import CLinux
import Glibc

/// A connection that is being opened: its name looked up, its addresses tried one after the other.
///
/// Unchecked: used on its loop only; the thread that looks up a name just passes the reference back.
final class SocketConnect: EventSource, ConnectionAttempt, @unchecked Sendable {
  typealias Completion = (Result<any ByteStream, IOError>) -> Void

  private let target: SocketAddress
  private var completion: Completion?
  private var untried: ArraySlice<RawAddress> = []
  private var timer: TimerToken?

  /// How long to wait before a Unix socket whose queue of new connections is full is tried again.
  private static let retryPause = Duration.milliseconds(2)

  init(loop: EpollLoop, target: SocketAddress, completion: @escaping Completion) {
    self.target = target
    self.completion = completion
    super.init(loop: loop, descriptor: -1)
  }

  func begin() {
    switch target {
    case .tls: failLater(SocketNetwork.withoutTLS(action))
    case .door: failLater(SocketNetwork.withoutDoors(action))
    case .unix(let path):
      guard let address = RawAddress(unixPath: path) else { return failLater(error(ENAMETOOLONG)) }
      tryLater([address])
    case .host(let host, let port):
      if let addresses = NameResolution.numeric(host, port: port) { return tryLater(addresses) }
      let action = action
      let code = Threads.detach(name: "resolve") { [self, loop] in
        let result = NameResolution.blocking(host, port: port, action: action)
        loop.execute { self.resolved(result) }
      }
      if code != 0 { failLater(IOError(action: action, code: code)) }
    }
  }

  func abandon() {
    assert(loop.isAccessible, "an attempt is abandoned on its loop")
    (loop as any EventLoop).cancel(&timer)
    closeDescriptor()
    let completion = completion.take()
    _ = consume completion
  }

  override func loopStopped() {
    abandon()
  }

  // MARK: Steps

  private func resolved(_ result: Result<[RawAddress], IOError>) {
    guard completion != nil else { return }
    switch result {
    case .success(let addresses):
      untried = addresses[...]
      tryNext(after: error(EHOSTUNREACH))
    case .failure(let error):
      complete(.failure(error))
    }
  }

  /// The caller of `connect` doesn't expect its completion before that has returned.
  private func tryLater(_ addresses: [RawAddress]) {
    untried = addresses[...]
    timer = loop.schedule(at: loop.now) { self.tryNext(after: self.error(EHOSTUNREACH)) }
  }

  private func failLater(_ error: IOError) {
    timer = loop.schedule(at: loop.now) { self.complete(.failure(error)) }
  }

  /// Tries addresses until one gets somewhere; `failure` is what to report when there is none left.
  private func tryNext(after failure: IOError) {
    timer = nil
    var failure = failure
    while let address = untried.popFirst() {
      descriptor = Socket.open(address.family)
      guard descriptor >= 0 else {
        failure = error(errno)
        continue
      }
      if address.family != AF_UNIX { Socket.sendWithoutDelay(descriptor) }
      let code = Socket.connect(descriptor, to: address)
      switch code {
      case 0:
        return succeed()
      case EINPROGRESS:
        do throws(IOError) {
          return try loop.register(self, for: .writable)
        } catch {
          failure = error
        }
      case EAGAIN:
        untried = [address]
        timer = loop.schedule(after: Self.retryPause) { self.tryNext(after: self.error(EAGAIN)) }
        return closeDescriptor()
      default:
        failure = error(code)
      }
      closeDescriptor()
    }
    complete(.failure(failure))
  }

  override func ready(_ events: EpollEvents) {
    let code = Socket.takeError(descriptor)
    if code == 0 && !events.contains(.writable) { return }
    if code == 0 { return succeed() }
    closeDescriptor()
    tryNext(after: error(code))
  }

  private func succeed() {
    loop.deregister(self)
    let stream = SocketStream(loop: loop, descriptor: descriptor, peer: target)
    descriptor = -1
    complete(.success(stream))
  }

  private func complete(_ result: Result<any ByteStream, IOError>) {
    timer = nil
    completion.take()?(result)
  }

  private var action: String { "connect to \(target)" }

  private func error(_ code: Int32) -> IOError {
    IOError(action: action, code: code)
  }
}
