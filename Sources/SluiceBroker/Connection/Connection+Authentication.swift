import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceWire

// Who a client is: asked in the handshake, and again when that expires or the broker's lists change.
extension Connection {
  /// Who the client is. Anybody where nobody is asked, and nobody before the handshake is over.
  var identity: Identity { admission?.identity ?? .anybody }

  private var authenticator: Authenticator? { context.core.authenticator }

  // MARK: The handshake

  func authenticate(_ agreement: ServerHandshake.Agreement) {
    clientName = agreement.clientName
    verify(agreement.credentials) { connection, finding in
      connection.admit(agreement, finding)
    }
  }

  private func admit(_ agreement: ServerHandshake.Agreement, _ finding: Authenticator.Finding) {
    guard let authenticator, let admission, session.phase == .authenticating else { return }
    do {
      let identity = try looked(at: finding, by: authenticator, agreement.credentials, isRenewal: false)
      try enter(identity.name)
      admission.identity = identity
      report(.authenticated(asClient, by: identity.proof, isRenewal: false))
      session.admitted()
      var agreement = agreement
      agreement.welcome.identity = identity.name
      agreement.welcome.expires = identity.wireExpiry
      opened(agreement)
    } catch {
      fail(error)
    }
  }

  // MARK: Renewal

  func renew(_ stream: UInt32, _ credentials: Credentials) {
    guard authenticator != nil else {
      session.renewed()
      return answer(session.request(on: stream), Authenticated(identity: ""))
    }
    let request = session.request(on: stream)
    verify(credentials) { connection, finding in
      connection.session.renewed()
      connection.renew(request, credentials, finding)
    }
  }

  private func renew(
    _ request: StreamToken?, _ credentials: Credentials, _ finding: Authenticator.Finding
  ) {
    // A client that has cancelled doesn't know whether the credentials were renewed, so they weren't.
    guard let authenticator, let admission, let request, session.isCurrent(request) else { return }
    attempt(request.stream) { () throws(WireError) in
      let identity = try looked(at: finding, by: authenticator, credentials, isRenewal: true)
      guard identity.hasName(of: admission.identity) else {
        let error = WireError(
          .authenticationFailed,
          "the new credentials are another's than the connection's; connect anew to be somebody else")
        report(.notAuthenticated(asClient, claim: identity.name, error, isRenewal: true))
        throw error
      }
      report(.authenticated(asClient, by: identity.proof, isRenewal: true))
      answer(request, Authenticated(identity: identity.name, expires: identity.wireExpiry))
      adopt(identity)
    }
  }

  private func looked(
    at finding: Authenticator.Finding, by authenticator: Authenticator, _ credentials: Credentials,
    isRenewal: Bool
  ) throws(WireError) -> Identity {
    do {
      return try authenticator.identity(finding)
    } catch {
      note(error)
      report(.notAuthenticated(asClient, claim: credentials.user, error, isRenewal: isRenewal))
      throw error
    }
  }

  private func note(_ error: WireError) {
    context.core.metrics.add(
      error.code == .tooManyAttempts ? .refusedAuthentications : .failedAuthentications)
  }

  // MARK: Verification

  /// Asks who has such credentials. Ends the connection, or the stream that waits, when too many others ask.
  private func verify(
    _ credentials: Credentials,
    _ body: @escaping @Sendable (Connection, Authenticator.Finding) -> Void
  ) {
    guard let authenticator, let admission else { return }
    do {
      admission.attempt = try authenticator.attempt(credentials, by: peer, security) { [reference] finding in
        reference.execute { connection in
          // A connection that is about to close has abandoned the attempt.
          guard let admission = connection.admission, admission.attempt != nil else { return }
          admission.attempt = nil
          body(connection, finding)
        }
      }
    } catch {
      body(self, Authenticator.Finding(error))
    }
  }

  /// The connection is about to close.
  func abandonAttempt() {
    guard let admission, let attempt = admission.attempt else { return }
    admission.attempt = nil
    authenticator?.abandon(attempt)
  }

  /// Ends the connection when the client's credentials have.
  func checkExpiry() -> Bool {
    guard let expires = admission?.identity.expires, context.loop.wallClock >= expires else { return false }
    context.core.metrics.add(.expiredCredentials)
    report(.expired(asClient))
    fail(WireError(.credentialsExpired, "the client's credentials have expired; connect anew with others"))
    return true
  }
}

extension Identity {
  /// As WELCOME says it.
  fileprivate var wireExpiry: UInt64 {
    expires.map { UInt64(clamping: $0) } ?? Authenticated.never
  }
}
