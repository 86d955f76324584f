import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceWire

/// Producers, as far as they are a connection's affair: what they may publish, what of it is in the log, and on disk.
extension Connection {
  func openPublication(_ stream: UInt32, _ frame: PublishOpen) throws(WireError) {
    let topic = try topicToPublish(to: frame)
    guard frame.acknowledgement != .durable || topic.storage != nil else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) is kept in memory, so nothing in it is durable; ask for acknowledgement \"received\", or create it with storage durable"
      )
    }
    if let fault = topic.storageRefusal {
      if let service = topic.storage?.service, service.refusal != nil {
        service.waiters.add(waiter(for: topic, stream, fault))
      }
      throw WireError(fault.code, fault.message)
    }
    let holder = ProducerTable.Holder(connection: id) { [reference] ticket in
      reference.execute { $0.fenced(stream, ticket) }
    }
    let attachment = try topic.attachPublication(frame, holder, now: context.loop.now)
    topic.storage?.service.waiters.remove(connection: id, topic: topic.name)
    let loopState = topic.loopState(on: context)
    lastNumber += 1
    let publication = Publication(
      stream: stream, number: lastNumber, loopState: loopState, connection: self, frame, attachment)
    loopState.add(publication)
    setHandle(stream, .publication(publication))
    session.publication(stream, continuesAt: attachment.nextSequence)
    guard publication.waitsForDisk, frame.producer != 0 else { return opened(publication, attachment) }
    // What it published before counts when it is on disk: until then it must not forget it.
    publication.isOpening = true
    whenCommitted(publication) { connection, publication in
      publication.isOpening = false
      connection.opened(publication, attachment)
    }
  }

  private func topicToPublish(to frame: PublishOpen) throws(WireError) -> Topic {
    guard frame.role == .requester else {
      return try topic(frame.topic, for: .publishOpen, stating: frame.settings)
    }
    do {
      return try topic(frame.topic, for: .publishOpen, ifMissing: .fail)
    } catch {
      guard error.code == .unknownTopic else { throw error }
      throw WireError(.noResponders, Fault.noResponders(on: frame.topic).message)
    }
  }

  /// This connection, as it waits for the store.
  private func waiter(for topic: Topic, _ stream: UInt32, _ fault: Fault) -> StorageWaiter {
    StorageWaiter(
      connection: id, client: clientName, identity: identity, stream: stream, topic: topic.name,
      since: context.loop.now, reason: fault.code == .storageFull ? .storageFull : .storageFailed)
  }

  /// A publication that its client has left is there until the disk has what was published on it, and CANCELLED is sent: until then its number
  /// isn't free, which the session can't know.
  func checkIsFree(_ stream: UInt32) throws(WireError) {
    guard case .publication = handle(stream) else { return }
    throw WireError(
      .invalidStream,
      "stream \(stream) was begun anew before CANCELLED had come; wait for it, or take another number")
  }

  /// Tells a producer that it may publish.
  private func opened(_ publication: Publication, _ attachment: Topic.Attachment) {
    let stream = publication.stream
    let demand =
      grantMore(to: publication)
      ?? Demand(grantedThrough: attachment.nextSequence, bytesThrough: 0)
    send(
      PublishOpened(
        epoch: attachment.epoch.number, grantedThrough: demand.grantedThrough,
        bytesThrough: demand.bytesThrough, nextSequence: attachment.nextSequence),
      stream: stream)
    // Something may have happened between the look and the entry in its list; and a source wants to know whether to start.
    topicChanged(publication)
  }

  /// Grants what the topic can take now.
  func grantMore(to publication: Publication) -> Demand? {
    guard session.phase == .open, let credit = session.publication(publication.stream) else { return nil }
    let more = grant(publication, holding: credit.held)
    publication.owed.add(more)
    let demand = session.grant(more, to: publication.stream)
    if demand != nil { publication.loopState.traffic.granted(more.records) }
    let left = session.publication(publication.stream)?.held ?? GrantLedger.Allowance()
    if left.records > 0, left.bytes > 0 {
      publication.loopState.traffic.heldUp(since: publication.heldUpSince.take(), until: context.loop.now)
    } else if publication.topic.isOutOfMemory {
      context.core.metrics.add(.memoryHolds)
      publication.heldUpSince = publication.heldUpSince ?? context.loop.now
    } else if publication.heldUpSince == nil {
      publication.heldUpSince = context.loop.now
    }
    return demand
  }

  func append(_ stream: UInt32, _ count: UInt32, _ batch: UnsafeRawBufferPointer) {
    guard case .publication(let publication) = handle(stream),
      let used = session.publication(stream)?.used(records: UInt64(count), bytes: batch.count)
    else { return }
    guard !publication.hasEnded else {
      let message = "topic \(publication.topic.name) was ended by this producer; publish to another topic"
      return refuse(stream, Fault(code: .topicEnded, message: message))
    }
    publication.owed.subtract(used)
    if used.bytes < UInt64(batch.count) { exceeded(by: UInt64(batch.count) - used.bytes) }
    switch unsafe publication.topic.append(
      batch, count: count, at: context.loop.wallClock, in: publication.epoch,
      isSource: publication.role == .source, using: used,
      by: publication.ticket, needsSubscriber: publication.role == .requester)
    {
    case .appended(let lastOffset):
      publication.appended(count, lastOffset: lastOffset)
      publication.loopState.traffic.received(UInt64(count), bytes: batch.count)
      context.traffic.recordsReceived &+= Int(count)
      context.appended(to: publication.topic, through: lastOffset)
      makeDue(publication)
    case .unfit(let fault):
      settle(publication)
      refuse(stream, fault)
    case .refused:
      // The topic has ended meanwhile, or the producer is fenced: somebody is about to say so on this stream.
      break
    }
  }

  func complete(_ stream: UInt32, _ ending: Complete.Ending) {
    guard case .publication(let publication) = handle(stream) else { return }
    settle(publication)
    let topic = publication.topic
    if let fault = topic.end(
      ending, in: publication.epoch, by: publication.producer, publication.ticket,
      isSource: publication.role == .source)
    {
      releaseStream(stream)
      return send(fault, stream: stream)
    }
    var failure: ErrorCode?
    if case .failure(let code, _) = ending { failure = code }
    report(.topicEnded(asClient, topic: topic.name, failure: failure))
    publication.hasCompleted = true
    guard topic.storage != nil else {
      return ended(
        publication,
        startedOver: topic.settings.scope == .whileConnected && topic.settings.connect != .immediate)
    }
    publication.ends = .withTopic
    whenCommitted(publication) { connection, publication in connection.ended(publication) }
  }

  /// The producer leaves. It is owed the last acknowledgement, which may have to wait for the disk.
  func cancel(_ publication: Publication) {
    settle(publication)
    guard publication.owesAck, publication.topic.storageRefusal == nil else {
      return ended(publication)
    }
    publication.ends = .alone
    whenCommitted(publication) { connection, publication in connection.ended(publication) }
  }

  /// Does something when all that has happened to the publication's topic is on disk, unless the publication is over by then.
  private func whenCommitted(
    _ publication: Publication, _ body: @escaping @Sendable (Connection, Publication) -> Void
  ) {
    let (stream, number) = (publication.stream, publication.number)
    publication.topic.whenCommitted { [reference] fault in
      reference.execute { connection in
        guard case .publication(let publication) = connection.handle(stream), publication.number == number
        else { return }
        if let fault { return connection.refuse(stream, fault) }
        body(connection, publication)
      }
    }
  }

  /// The topic is over, or the publication, as the producer has said.
  private func ended(_ publication: Publication, startedOver: Bool = false) {
    settle(publication)
    releaseStream(publication.stream)
    send(Cancelled(hasStartedOver: startedOver), stream: publication.stream)
  }

  /// Something about the topic has changed, or its subscribers have: tells the producer what concerns it.
  func topicChanged(_ publication: Publication) {
    let topic = publication.topic
    if let fault = topic.storageRefusal, !publication.isOpening, !topic.isDeleted {
      // Who has left waits for CANCELLED, not for the disk.
      if publication.ends == .alone { return ended(publication) }
      settle(publication)
      topic.storage?.service.waiters.add(waiter(for: topic, publication.stream, fault))
      return refuse(publication.stream, fault)
    }
    // It waits for the disk, and is told then.
    if publication.ends != nil, !topic.isDeleted { return }
    switch publication.epoch.condition {
    case .ended:
      if publication.role == .source, topic.startsSourcesAnew, !topic.isDeleted {
        return startedOver(publication)
      }
      return topicEnded(publication)
    case .superseded:
      if publication.role == .source, topic.startsSourcesAnew, !topic.isDeleted {
        return startedOver(publication)
      }
      publication.epoch = topic.epoch
    case .open, .deleted: break
    }
    if topic.isDeleted { return topicDeleted(publication.stream, name: topic.name) }
    if publication.role == .source, !publication.isOpening {
      let isConnected = topic.isConnected
      if isConnected != publication.toldConnected {
        publication.toldConnected = isConnected
        if isConnected {
          send(Connected(), stream: publication.stream)
        } else {
          send(Disconnected(), stream: publication.stream)
        }
      }
    }
    makeDue(publication)
  }

  /// The topic has started over. A source publishes one run to one epoch, so the broker drops what the source has sent for the epoch that is over.
  private func startedOver(_ publication: Publication) {
    settle(publication)
    refuse(publication.stream, .startedOver(publication.topic.name))
  }

  /// Another producer has ended the topic.
  private func topicEnded(_ publication: Publication) {
    if publication.hasEnded { return }
    settle(publication)
    session.ended(publication.stream)
    releaseStream(publication.stream)
    send(Complete(publication.epoch.ending ?? .finished), stream: publication.stream)
  }

  /// Another publication has the producer's number now.
  private func fenced(_ stream: UInt32, _ ticket: ProducerTable.Ticket) {
    guard case .publication(let publication) = handle(stream), publication.ticket == ticket else { return }
    settle(publication)
    refuse(stream, .fenced(on: publication.topic.name))
  }

  func topicDeleted(_ stream: UInt32, name: String) {
    refuse(stream, Fault(code: .topicDeleted, message: "topic \(name) was deleted"))
  }
}
