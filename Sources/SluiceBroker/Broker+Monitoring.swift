import SluiceAccess
import SluiceIO
import SluiceTopics
import SluiceWire

// For services beside the broker, such as a dashboard: the identity of their users, and the liveness of the loops.
extension Broker {
  /// Whether clients must authenticate.
  public var authenticatesClients: Bool { core.authenticator != nil }

  /// Verifies credentials. The attempt queues with those of clients, and the same limits on attempts apply. From any thread.
  ///
  /// - Parameters:
  ///   - credentials: those to verify.
  ///   - peer: the address that the attempt comes from.
  ///   - completion: called once, on any thread, unless the broker stops before.
  public func authenticate(
    _ credentials: Credentials, from peer: SocketAddress,
    completion: @escaping @Sendable (Result<Identity, WireError>) -> Void
  ) {
    guard let authenticator = core.authenticator else { return completion(.success(.anonymous)) }
    let metrics = core.metrics
    do {
      _ = try authenticator.attempt(credentials, of: "", by: peer, nil) { finding in
        let result = Result { () throws(WireError) in try authenticator.identity(finding) }
        if case .failure = result { metrics.add(.failedAuthentications) }
        completion(result)
      }
    } catch {
      metrics.add(.refusedAuthentications)
      completion(.failure(error))
    }
  }

  /// The present permissions of an identity that was authenticated before; nil when it may no longer connect. From any thread.
  public func reconsider(_ identity: Identity) -> Identity? {
    guard let authenticator = core.authenticator else { return identity }
    return authenticator.reconsider(identity)
  }

  // MARK: Loops

  /// The number of loops that serve connections. Loops that wait for the disk or verify credentials don't count.
  public var loopCount: Int { contexts.count }

  /// Checks that each loop still runs. From any thread; returns at once.
  ///
  /// - Parameter answer: called once on each loop with its number, from 0 on, in its next turn; not called on a loop that hangs or has ended.
  public func askLoops(_ answer: @escaping @Sendable (Int) -> Void) {
    for (number, context) in contexts.enumerated() { context.loop.execute { answer(number) } }
  }
}
