import SluiceIO
import SluiceWire

/// What a ``Client`` proves with who it is, to a broker that asks.
///
/// ```swift
/// var options = ClientOptions()
/// options.credentials = .password("correct horse", user: "billing")
/// options.credentials = .token(token)
/// options.credentials = .provider { .token(try await fetchToken()) }
/// ```
///
/// A certificate of TLS proves it as well, and needs none of this. Secrets are never part of a description.
public struct ClientCredentials: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  public typealias Provide = @Sendable () async throws -> ClientCredentials

  enum Kind: Hashable, Sendable {
    case fixed(Credentials)
    case provided(Provider<Provide>)
    /// Asked on the loop: for simulations, which have no tasks.
    case computed(Provider<Compute>)

    /// Whether they may be others the next time.
    var isRenewable: Bool { if case .fixed = self { false } else { true } }
  }

  typealias Compute = @Sendable () -> Result<Credentials, ClientError>

  /// The same as itself alone.
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

  /// Nothing is said.
  public static let none = ClientCredentials(.fixed(.none))

  /// A user's name and password.
  public static func password(_ password: String, user: String) -> ClientCredentials {
    ClientCredentials(.fixed(.password(password, user: user)))
  }

  /// A signed token. When it expires, the broker ends the connection: tokens that do are better ``provider(_:)``'s.
  public static func token(_ token: String) -> ClientCredentials {
    ClientCredentials(.fixed(.token(token)))
  }

  /// Asked before each connection is made, and again when four fifths of the time are over for which its answer holds: then the connection goes on
  /// with the new ones. Called in a task of its own; what it throws is why there is no connection, for this time. It has as long as
  /// ``ClientOptions/connectTimeout``.
  public static func provider(_ provide: @escaping Provide) -> ClientCredentials {
    ClientCredentials(.provided(Provider(provide)))
  }

  /// Made on the client's loop each time.
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

/// Who a broker takes a client for.
public struct ClientIdentity: Hashable, Sendable {
  public let name: String
  /// When that ends unless it is renewed, in milliseconds since 1970; nil for never.
  public let expires: Int64?

  /// Nil where the broker doesn't ask.
  init?(name: String, expires: UInt64) {
    if name.isEmpty { return nil }
    self.name = name
    self.expires = expires == Authenticated.never ? nil : Int64(clamping: expires)
  }
}

/// Asks for the credentials of a connection, in a limited time. On the loop only.
final class CredentialsQuestion {
  typealias Completion = (Result<Credentials, ClientError>) -> Void

  /// Providers may hand on to others, but not for ever.
  private static let mostProviders = 8

  private let loop: any EventLoop
  private var completion: Completion?
  private var task: Task<Void, Never>?
  private var timer: TimerToken?

  /// - Parameter completion: called once, at once for credentials that are known, unless the question is abandoned.
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
    task = Answer(self).fill(from: provider, on: loop)
  }

  func abandon() {
    completion = nil
    finish()
  }

  fileprivate static func ask(
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
    return .failure(unavailable("their provider hands on to others without end"))
  }

  private static func unavailable(_ why: String) -> ClientError {
    ClientError(.credentialsUnavailable, "the client's credentials can't be had: \(why)")
  }

  private func complete(_ result: Result<Credentials, ClientError>) {
    let completion = exchange(&completion, for: nil)
    finish()
    completion?(result)
  }

  private func finish() {
    task?.cancel()
    task = nil
    if let timer { loop.cancel(timer) }
    timer = nil
  }

  /// What the task keeps of the question.
  // @unchecked: it is looked at on the loop only.
  private final class Answer: @unchecked Sendable {
    private(set) weak var question: CredentialsQuestion?

    init(_ question: CredentialsQuestion) {
      self.question = question
    }

    func fill(
      from provider: ClientCredentials.Provider<ClientCredentials.Provide>, on loop: any EventLoop
    ) -> Task<Void, Never> {
      Task {
        let result = await CredentialsQuestion.ask(provider)
        loop.execute { self.question?.complete(result) }
      }
    }
  }
}

/// Renews a connection's credentials before they expire, if there is somebody who provides others. Ends with the connection.
// @unchecked: used on the client's loop only, where requests are completed as well.
final class CredentialsRenewal: @unchecked Sendable {
  /// However little time is left, not more often than this.
  private static let shortestWait = Duration.seconds(1)

  private unowned let connection: Connection
  /// Those that hold.
  private var credentials: Credentials
  private var expires: Int64?
  private var question: CredentialsQuestion?
  private var timer: TimerToken?

  init(_ credentials: Credentials, of connection: Connection, expires: Int64?) {
    self.credentials = credentials
    self.connection = connection
    self.expires = expires
    wait()
  }

  private var core: ClientCore { connection.core }

  /// Nobody needs it any more.
  func end() {
    question?.abandon()
    question = nil
    if let timer { core.loop.cancel(timer) }
    timer = nil
  }

  /// The next time is when four fifths of what is left are over, also after one that was in vain.
  private func wait() {
    guard let expires, core.options.credentials.kind.isRenewable else { return }
    let (left, overflow) = expires.subtractingReportingOverflow(core.loop.wallClock)
    // Longer than a clock can be trusted.
    let longest = Int64(86_400_000 * 24)
    guard overflow || left > 0 else { return }
    let delay = Duration.milliseconds(overflow ? longest : min(left / 5 * 4, longest))
    timer = core.loop.schedule(after: max(delay, Self.shortestWait)) { [weak self] in
      self?.timer = nil
      self?.ask()
    }
  }

  private func ask() {
    question = nil
    let question = CredentialsQuestion(
      core.options.credentials, within: core.options.connectTimeout, on: core.loop
    ) { [weak self] result in
      guard let self else { return }
      self.question = nil
      // Those that hold don't hold longer for being shown again.
      guard case .success(let credentials) = result, credentials != self.credentials else { return wait() }
      show(credentials)
    }
    if timer == nil { self.question = question }
  }

  private func show(_ credentials: Credentials) {
    let request = Request(.authenticate(Authenticate(credentials)), timeout: core.options.connectTimeout) {
      [weak self] result in
      guard let self, connection.renewal === self else { return }
      if case .success(.authenticated(let frame)) = result {
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
