import ReactiveCore
import SluiceIO

// Owners of streams that have none for now: each waits for a connection, for a node, or for a time. On the loop only.
extension ClientCore {
  /// Opens the owner's stream on the next connection.
  func awaitConnection(_ attachment: Attachment) {
    if interrupt(attachment) { awaiting.add(attachment) }
  }

  /// Handles that the owner has no stream for now. Returns whether it waits for one.
  private func interrupt(_ attachment: Attachment) -> Bool {
    switch attachment {
    case .subscription(let subscription) where subscription.isCancelled:
      subscription.forget()
      return false
    case .subscription(let subscription): subscription.interrupted()
    case .publication(let publication):
      publication.interrupted()
      if publication.endsIfReleased() { return false }
    case .request(let request):
      if request.isOver { return false }
      request.start(self)
    }
    return true
  }

  func stopAwaiting(_ owner: AnyObject) {
    if case .timer(let timer) = awaiting.remove(owner) { loop.cancel(timer) }
  }

  /// Schedules the reopening of a publication that the broker's storage can't accept for now.
  ///
  /// - Returns: false if the policy gives up; nothing has happened then.
  func backOff(_ publication: Publication, _ error: ClientError) -> Bool {
    guard
      let (delay, attempt) = publication.reopening.refused(
        options.reconnect, seed: random.next(), at: loop.now)
    else { return false }
    if open(.publication(publication), after: delay) {
      publication.states.send(.waiting(delay, attempt: attempt, cause: error))
    }
    return true
  }

  /// Schedules the reopening of a subscription that a limit of the broker has ended.
  ///
  /// - Returns: false for a subscription that was never open, and if the policy gives up; nothing has happened then.
  func backOff(_ subscription: RemoteSubscription) -> Bool {
    guard subscription.wasSubscribed,
      let (delay, _) = subscription.reopening.refused(
        options.reconnect, seed: random.next(), at: loop.now)
    else { return false }
    _ = open(.subscription(subscription), after: delay)
    return true
  }

  /// Schedules the reopening of a stream whose topic moves to another node, after a short delay.
  ///
  /// Ends the stream if the policy gives up.
  func follow(_ attachment: Attachment, _ error: ClientError) {
    let policy = ReconnectPolicy.moves(under: options.reconnect)
    let move = attachment.move ?? Move()
    attachment.move = move
    if let delay = move.refused(policy, seed: random.next(), at: loop.now) {
      if move.lasts(at: loop.now) { unserved.send(error) }
      _ = open(attachment, after: delay)
    } else {
      end(attachment, .unserved(attachment.topic, for: policy.giveUpAfter, error))
    }
  }

  /// Opens the owner's stream at the client's own broker, which may name another node.
  func ask(_ attachment: Attachment) {
    if let connection { connection.streams.open(attachment) } else { awaitConnection(attachment) }
  }

  /// Opens the owner's stream at the client's own broker, which must not redirect it to another node.
  func relay(_ attachment: Attachment) {
    if let connection {
      connection.streams.open(attachment, isRelayed: true)
    } else {
      awaitConnection(attachment)
    }
  }

  /// Opens the owner's stream once there is a connection to the node.
  func wait(_ attachment: Attachment, for node: DirectLink) {
    if interrupt(attachment) { awaiting.add(attachment, until: .node(node)) }
  }

  func removeWaiting(for node: DirectLink) -> [Attachment] {
    awaiting.removeAll { if case .node(let awaited) = $0 { awaited === node } else { false } }.map(\.0)
  }

  /// Opens the owner's stream after a delay. Returns false if the owner no longer needs it.
  private func open(_ attachment: Attachment, after delay: Duration) -> Bool {
    guard interrupt(attachment) else { return false }
    let timer = loop.schedule(after: delay) { [self] in
      awaiting.remove(attachment.owner)
      ask(attachment)
    }
    awaiting.add(attachment, until: .timer(timer))
    return true
  }
}
