import SluiceIO
import SluiceWire

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
    connection.ask(request)
  }
}
