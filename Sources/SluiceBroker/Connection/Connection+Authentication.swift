import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// Authenticates the client in the handshake, and again when its credentials expire or the broker's policy changes.
extension Connection {
  /// The client's identity: anonymous where the broker has no policy, and without permissions before the handshake is complete.
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
    // A client that has cancelled the request doesn't expect its credentials to be renewed.
    guard let authenticator, let admission, let request, session.isCurrent(request) else { return }
    attempt(request.stream) { () throws(WireError) in
      let identity = try looked(at: finding, by: authenticator, credentials, isRenewal: true)
      guard identity.hasName(of: admission.identity) else {
        let error = WireError(
          .authenticationFailed,
          "the new credentials are of another identity than the connection's; open a new connection to change it"
        )
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
      context.core.metrics.add(
        error.code == .tooManyAttempts ? .refusedAuthentications : .failedAuthentications)
      report(.notAuthenticated(asClient, claim: credentials.user, error, isRenewal: isRenewal))
      throw error
    }
  }

  // MARK: Verification

  /// Has credentials verified. Too many waiting attempts make the result an error, which ends the connection or the request.
  private func verify(
    _ credentials: Credentials,
    _ body: @escaping @Sendable (Connection, Authenticator.Finding) -> Void
  ) {
    guard let authenticator, let admission else { return }
    do {
      admission.attempt = try authenticator.attempt(credentials, by: peer, security) { [reference] finding in
        reference.execute { connection in
          // A closing connection has abandoned the attempt.
          guard let admission = connection.admission, admission.attempt != nil else { return }
          admission.attempt = nil
          body(connection, finding)
        }
      }
    } catch {
      body(self, Authenticator.Finding(error))
    }
  }

  /// Cancels a verification that is under way, before the connection closes.
  func abandonAttempt() {
    guard let admission, let attempt = admission.attempt else { return }
    admission.attempt = nil
    authenticator?.abandon(attempt)
  }

  /// Ends the connection when the client's credentials have expired. Returns whether they have.
  func checkExpiry() -> Bool {
    guard let expires = admission?.identity.expires, context.loop.wallClock >= expires else { return false }
    context.core.metrics.add(.expiredCredentials)
    report(.expired(asClient))
    fail(WireError(.credentialsExpired, "the client's credentials have expired; connect again with new ones"))
    return true
  }
}

extension Identity {
  /// As WELCOME says it.
  fileprivate var wireExpiry: UInt64 {
    expires.map { UInt64(clamping: $0) } ?? Authenticated.never
  }
}

/// The identity of a connection's client, where the broker has a policy, and its attempt to authenticate. Belongs to the connection's loop.
final class Admission {
  /// Without permissions until the handshake is complete.
  var identity = Identity(name: "", proof: .none, permissions: .nothing)
  /// The verification under way of the credentials of HELLO or AUTHENTICATE.
  var attempt: Authenticator.Attempt?
}
