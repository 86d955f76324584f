import SluiceAccess
import SluiceIO
import SluiceWire

// For those who let people in by other doors than the broker's own, such as a page about it.
extension Broker {
  /// Whether clients are asked who they are.
  public var asksClients: Bool { core.authenticator != nil }

  /// Finds out who has such credentials, behind the clients that wait for the same, and with their limits on attempts. From any thread.
  ///
  /// - Parameters:
  ///   - peer: where the attempt comes from.
  ///   - completion: called once, on any thread, unless the broker stops before.
  public func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void
  ) {
    guard let authenticator = core.authenticator else { return completion(.success(.anybody)) }
    let metrics = core.metrics
    do {
      _ = try authenticator.attempt(credentials, by: peer, nil) { finding in
        let result = Result { () throws(WireError) in try authenticator.identity(finding) }
        if case .failure = result { metrics.add(.failedAuthentications) }
        completion(result)
      }
    } catch {
      metrics.add(.refusedAuthentications)
      completion(.failure(error))
    }
  }

  /// What became of somebody who was let in before, by the policy that holds now; nil when it may not be connected any more. From any thread.
  public func reconsider(_ identity: Identity) -> Identity? {
    guard let authenticator = core.authenticator else { return identity }
    return authenticator.reconsider(identity)
  }
}
