import SluiceIO
import SluiceWire

/// The credentials that a ``Client`` sends to a broker with access control.
///
/// ```swift
/// var options = ClientOptions()
/// options.credentials = .password("correct horse", user: "billing")
/// options.credentials = .token(token)
/// options.credentials = .provider { .token(try await fetchToken()) }
/// ```
///
/// A client with a TLS certificate needs no other credentials. Descriptions contain no secrets.
public struct ClientCredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public typealias Provide = @Sendable () async throws -> ClientCredentials

  enum Kind: Hashable, Sendable {
    case fixed(Credentials)
    case provided(Provider<Provide>)
    /// Computed on the loop: for simulations, which have no tasks.
    case computed(Provider<Compute>)

    /// Whether they may differ the next time.
    var isRenewable: Bool { if case .fixed = self { false } else { true } }
  }

  typealias Compute = @Sendable () -> Result<Credentials, ClientError>

  /// Equal to itself only.
  final class Provider<Ask: Sendable>: Hashable, Sendable {
    let ask: Ask

    init(_ ask: Ask) {
      self.ask = ask
    }

    static func == (left: Provider, right: Provider) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
  }

  let kind: Kind

  private init(_ kind: Kind) {
    self.kind = kind
  }

  /// No credentials.
  public static let none = ClientCredentials(.fixed(.none))

  /// A user's name and password.
  public static func password(_ password: String, user: String) -> ClientCredentials {
    ClientCredentials(.fixed(.password(password, user: user)))
  }

  /// A signed token. The broker ends the connection when it expires; use ``provider(_:)`` for tokens that expire.
  public static func token(_ token: String) -> ClientCredentials {
    ClientCredentials(.fixed(.token(token)))
  }

  /// Credentials from a closure that is called before each connection, and again when four fifths of their time have passed: the connection
  /// continues with the new ones. The closure runs in its own task, for at most ``ClientOptions/connectTimeout``. If it throws, this attempt to
  /// connect fails with its error.
  public static func provider(_ provide: @escaping Provide) -> ClientCredentials {
    ClientCredentials(.provided(Provider(provide)))
  }

  /// Credentials that are computed on the client's loop each time.
  static func computed(_ compute: @escaping Compute) -> ClientCredentials {
    ClientCredentials(.computed(Provider(compute)))
  }

  public var description: String {
    switch kind {
    case .fixed(let credentials): credentials.description
    case .provided, .computed: "provided credentials"
    }
  }

  public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The identity that a broker has given a client.
public struct ClientIdentity: Hashable, Sendable {
  public let name: String
  /// When the identity expires unless it is renewed; nil for never.
  public let expires: Timestamp?

  /// Nil if the broker has no access control.
  init?(name: String, expires: UInt64) {
    if name.isEmpty { return nil }
    self.name = name
    self.expires =
      expires == Authenticated.never ? nil : Timestamp(millisecondsSince1970: Int64(clamping: expires))
  }
}

/// Gets the credentials for a connection from their provider, in a limited time.
// @unchecked: used on the loop only; its task merely has the loop complete it.
final class CredentialsRequest: @unchecked Sendable {
  typealias Completion = (Result<Credentials, ClientError>) -> Void

  /// A provider may return another provider, up to this number.
  private static let mostProviders = 8

  private let loop: any EventLoop
  private var completion: Completion?
  private var task: Task<Void, Never>?
  private var timer: TimerToken?

  /// - Parameter completion: called once, immediately for fixed credentials, unless the request is abandoned.
  init(
    _ credentials: ClientCredentials, within time: Duration, on loop: any EventLoop,
    _ completion: @escaping Completion
  ) {
    self.loop = loop
    let provider: ClientCredentials.Provider<ClientCredentials.Provide>
    switch credentials.kind {
    case .fixed(let fixed):
      completion(.success(fixed))
      return
    case .computed(let computed):
      completion(computed.ask())
      return
    case .provided(let provided): provider = provided
    }
    self.completion = completion
    timer = loop.schedule(after: time) { [weak self] in
      self?.timer = nil
      self?.complete(.failure(Self.unavailable("they weren't provided within \(time)")))
    }
    task = Task { [weak self] in
      let result = await Self.ask(provider)
      loop.execute { [weak self] in self?.complete(result) }
    }
  }

  func abandon() {
    completion = nil
    finish()
  }

  private static func ask(
    _ provider: ClientCredentials.Provider<ClientCredentials.Provide>
  ) async -> Result<Credentials, ClientError> {
    var provider = provider
    for _ in 0..<mostProviders {
      do {
        switch try await provider.ask().kind {
        case .fixed(let fixed): return .success(fixed)
        case .computed(let computed): return computed.ask()
        case .provided(let next): provider = next
        }
      } catch let error as ClientError {
        return .failure(error)
      } catch {
        return .failure(unavailable("\(error)"))
      }
    }
    return .failure(unavailable("their provider returns other providers without end"))
  }

  private static func unavailable(_ why: String) -> ClientError {
    ClientError(.credentialsUnavailable, "the client's credentials weren't provided: \(why)")
  }

  private func complete(_ result: Result<Credentials, ClientError>) {
    let completion = completion.take()
    finish()
    completion?(result)
  }

  private func finish() {
    task?.cancel()
    task = nil
    loop.cancel(&timer)
  }
}

/// Renews a connection's credentials before they expire, if they have a provider. Ends with the connection.
// @unchecked: used on the client's loop only, where requests are completed as well.
final class CredentialsRenewal: @unchecked Sendable {
  /// The shortest interval between renewals.
  private static let shortestWait = Duration.seconds(1)

  private unowned let connection: Connection
  /// The current credentials.
  private var credentials: Credentials
  private var expires: Timestamp?
  private var credentialsRequest: CredentialsRequest?
  private var timer: TimerToken?

  init(_ credentials: Credentials, of connection: Connection, expires: Timestamp?) {
    self.credentials = credentials
    self.connection = connection
    self.expires = expires
    wait()
  }

  private var core: ClientCore { connection.core }

  /// The connection is closed.
  func end() {
    credentialsRequest?.abandon()
    credentialsRequest = nil
    core.loop.cancel(&timer)
  }

  /// Schedules the next renewal for when four fifths of the remaining time have passed, also after one that failed.
  private func wait() {
    guard let expires, core.options.credentials.kind.isRenewable else { return }
    let (left, overflow) = expires.millisecondsSince1970.subtractingReportingOverflow(core.loop.wallClock)
    // Beyond this, differences between clocks could matter.
    let longest = Int64(86_400_000 * 24)
    guard overflow || left > 0 else { return }
    let delay = Duration.milliseconds(overflow ? longest : min(left / 5 * 4, longest))
    timer = core.loop.schedule(after: max(delay, Self.shortestWait)) { [weak self] in
      self?.timer = nil
      self?.ask()
    }
  }

  private func ask() {
    credentialsRequest = nil
    let credentialsRequest = CredentialsRequest(
      core.options.credentials, within: core.options.connectTimeout, on: core.loop
    ) { [weak self] result in
      guard let self else { return }
      self.credentialsRequest = nil
      // Sending the same credentials again wouldn't extend their time.
      guard case .success(let credentials) = result, credentials != self.credentials else { return wait() }
      show(credentials)
    }
    if timer == nil { self.credentialsRequest = credentialsRequest }
  }

  private func show(_ credentials: Credentials) {
    let request = Request(Authenticate(credentials), timeout: core.options.connectTimeout) {
      [weak self] (result: Result<Authenticated, ClientError>) in
      guard let self, connection.renewal === self else { return }
      if let frame = try? result.get() {
        self.credentials = credentials
        let identity = ClientIdentity(name: frame.identity, expires: frame.expires)
        expires = identity?.expires
        core.renewed(identity)
      }
      wait()
    }
    connection.streams.ask(request)
  }
}
