import Glibc
import SluiceIO
import SluiceWire

/// Makes a connection and sees it through the handshake, in a limited time. On the loop only.
final class Connector {
  typealias Completion = (Result<(Connection, Welcome), ClientError>) -> Void

  private unowned let core: ClientCore
  private var completion: Completion?
  private var attempt: (any ConnectionAttempt)?
  private var connection: Connection?
  private var timer: TimerToken?

  init(core: ClientCore, completion: @escaping Completion) {
    self.core = core
    self.completion = completion
  }

  func start(on network: any Network) {
    timer = core.loop.schedule(after: core.options.connectTimeout) { [weak self] in self?.timeOut() }
    // Kept by its own completion until that was called or `abandon()`.
    attempt = network.connect(to: core.address, on: core.loop) { [weak self] result in
      self?.connected(result)
    }
  }

  /// Gives up without a word.
  func abandon() {
    completion = nil
    finish()
    connection?.abort()
    connection = nil
  }

  private func connected(_ result: Result<any ByteStream, IOError>) {
    attempt = nil
    guard completion != nil else {
      if case .success(let stream) = result { stream.abort() }
      return
    }
    switch result {
    case .success(let stream):
      connection = Connection(stream: stream, core: core) { [weak self] result in self?.shookHands(result) }
    case .failure(let error):
      complete(.failure(ClientError(connecting: error, to: core.address)))
    }
  }

  private func shookHands(_ result: Result<Welcome, ClientError>) {
    guard let connection else { return }
    self.connection = nil
    complete(result.map { (connection, $0) })
  }

  private func timeOut() {
    timer = nil
    let time = core.options.connectTimeout
    let error =
      connection == nil
      ? ClientError(
        .connectTimeout,
        "no connection to \(core.address) within \(time); check the address, and that nothing between drops packets"
      )
      : ClientError(
        .connectTimeout,
        "\(core.address) accepted the connection and didn't answer within \(time); is it a Sluice broker?")
    connection?.abort()
    connection = nil
    complete(.failure(error))
  }

  private func complete(_ result: Result<(Connection, Welcome), ClientError>) {
    let completion = completion
    self.completion = nil
    finish()
    completion?(result)
  }

  private func finish() {
    attempt?.abandon()
    attempt = nil
    if let timer { core.loop.cancel(timer) }
    timer = nil
  }
}

extension ClientError {
  init(connecting error: IOError, to address: SocketAddress) {
    switch error.code {
    case ECONNREFUSED, ENOENT:
      self.init(
        .connectionRefused, "nobody listens at \(address); is the broker running, and at this address?")
    default:
      self.init(.connectFailed, "\(error)")
    }
  }
}
