import Glibc
import SluiceIO
import SluiceTLS
import SluiceWire

/// Makes a connection, including the handshake, in a limited time. On the loop only.
final class Connector {
  typealias Completion = (Result<(Connection, Welcome), ClientError>) -> Void

  private unowned let core: ClientCore
  private let address: SocketAddress
  private let node: DirectLink?
  private let timeout: Duration
  private var completion: Completion?
  private var credentialsRequest: CredentialsRequest?
  private var attempt: (any ConnectionAttempt)?
  private var connection: Connection?
  private var timer: TimerToken?

  /// - Parameters:
  ///   - address: where to connect.
  ///   - node: see ``Connection/node``.
  ///   - timeout: the longest time, with the handshake.
  ///   - completion: called once.
  init(
    core: ClientCore, to address: SocketAddress, node: DirectLink? = nil, within timeout: Duration,
    completion: @escaping Completion
  ) {
    self.core = core
    self.address = address
    self.node = node
    self.timeout = timeout
    self.completion = completion
  }

  func start(on network: any Network) {
    timer = core.loop.schedule(after: timeout) { [weak self] in self?.timeOut() }
    credentialsRequest = CredentialsRequest(core.options.credentials, within: timeout, on: core.loop) {
      [weak self] result in
      switch result {
      case .success(let credentials): self?.connect(with: credentials, on: network)
      case .failure(let error): self?.refuse(error)
      }
    }
  }

  private func connect(with credentials: Credentials, on network: any Network) {
    guard credentials.method == .none || core.options.allowsPlaintextCredentials || !address.isUnencrypted
    else {
      return refuse(.unencrypted(address))
    }
    // Its completion retains the attempt until it is called, or until `abandon()`.
    attempt = network.connect(to: address, on: core.loop) { [weak self] result in
      self?.connected(result, credentials)
    }
  }

  /// Fails in the loop's next turn, since `start(on:)` must return before its completion is called.
  private func refuse(_ error: ClientError) {
    core.loop.cancel(&timer)
    timer = core.loop.schedule(at: core.loop.now) { [weak self] in
      self?.timer = nil
      self?.complete(.failure(error))
    }
  }

  /// Stops without calling the completion.
  func abandon() {
    completion = nil
    finish()
    connection?.abort()
    connection = nil
  }

  private func connected(_ result: Result<any ByteStream, IOError>, _ credentials: Credentials) {
    attempt = nil
    guard completion != nil else {
      if case .success(let stream) = result { stream.abort() }
      return
    }
    switch result {
    case .success(let stream):
      connection = Connection(
        stream: stream, core: core, address: address, node: node, credentials: credentials
      ) { [weak self] result in self?.shookHands(result) }
    case .failure(let error):
      complete(.failure(ClientError(connecting: error, to: address)))
    }
  }

  private func shookHands(_ result: Result<Welcome, ClientError>) {
    guard let connection else { return }
    self.connection = nil
    complete(result.map { (connection, $0) })
  }

  private func timeOut() {
    timer = nil
    let error =
      attempt == nil && connection == nil
      ? ClientError(.credentialsUnavailable, "the client's credentials weren't provided within \(timeout)")
      : connection == nil
        ? ClientError(
          .connectTimeout,
          "no connection to \(address) within \(timeout); check the address, and that nothing between drops packets"
        )
        : ClientError(
          .connectTimeout,
          "\(address) accepted the connection and didn't answer within \(timeout); is it a Sluice broker? "
            + "A broker also delays connections after failed logins from the same address")
    connection?.abort()
    connection = nil
    complete(.failure(error))
  }

  private func complete(_ result: Result<(Connection, Welcome), ClientError>) {
    let completion = completion.take()
    finish()
    completion?(result)
  }

  private func finish() {
    credentialsRequest?.abandon()
    credentialsRequest = nil
    attempt?.abandon()
    attempt = nil
    core.loop.cancel(&timer)
  }
}

extension ClientError {
  init(connecting error: IOError, to address: SocketAddress) {
    switch error.code {
    case _ where error.isTLSFailure: self.init(tls: error)
    case ECONNREFUSED, ENOENT:
      self.init(
        .connectionRefused, "no process listens at \(address); is the broker running, and at this address?")
    default:
      self.init(.connectFailed, "\(error)")
    }
  }
}
