import SluiceAccess
import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// Attaching a producer to its topic.
extension PublicationStream {
  /// Attaches a producer to its topic.
  ///
  /// - Throws: the reason why nothing can be published, or not by this producer.
  static func open(_ stream: UInt32, _ frame: PublishOpen, on streams: StreamMultiplexer) throws(WireError) {
    let topic = try topic(of: frame, on: streams)
    guard frame.acknowledgement != .durable || topic.storage != nil else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) is kept in memory, so nothing in it is durable; ask for acknowledgement \"received\", or create it with storage durable"
      )
    }
    if let fault = topic.storageRefusal {
      if let service = topic.storage?.service, service.refusal != nil {
        let received = topic.received(from: frame.producer) ?? frame.firstSequence
        service.waiters.add(StoreWaiter(streams, stream, topic: topic, fault, received: received))
      }
      throw WireError(fault)
    }
    let continuation = streams.continuation(of: stream)
    let holder = ProducerTable.Holder(connection: streams.client.isNode ? nil : streams.client.connection) {
      _ in
      continuation.resume { (publication: PublicationStream) in publication.fenced() }
    }
    topic.compare(frame.known, on: streams.topics)
    let attachment = try topic.attachPublication(
      frame, holder, by: streams.client.keeper, now: streams.loop.now)
    topic.storage?.service.waiters.remove(
      streams.user(of: stream), by: streams.client.connection, topic: topic.name)
    let loopState = topic.loopState(on: streams.topics)
    let publication = PublicationStream(
      stream: stream, loopState: loopState, streams: streams, frame, attachment)
    loopState.add(publication)
    streams.attach(publication, to: stream)
    streams.session.publication(stream, continuesAt: attachment.nextSequence)
    let waits = publication.acknowledgements.waitsForDisk && frame.producer != 0
    guard waits || topic.isEpochUnsaved else { return publication.opened(attachment, frame.known) }
    // The producer keeps records that it published before until they are on disk, so they count only then.
    publication.isOpening = true
    publication.whenCommitted { publication in
      publication.isOpening = false
      publication.opened(attachment, frame.known)
    }
  }

  private static func topic(of frame: PublishOpen, on streams: StreamMultiplexer) throws(WireError) -> Topic {
    guard frame.role == .requester else {
      return try streams.client.topic(frame.topic, for: .publishOpen, stating: frame.settings)
    }
    do {
      return try streams.client.topic(frame.topic, for: .publishOpen, ifMissing: .fail)
    } catch {
      guard error.code == .unknownTopic else { throw error }
      throw WireError(.noResponders, Fault.noResponders(on: frame.topic).message)
    }
  }

  /// Notifies the producer that it may publish.
  private func opened(_ attachment: Topic.Attachment, _ known: KnownHistory) {
    let demand =
      grantMore(on: streams) ?? Demand(grantedThrough: attachment.nextSequence, bytesThrough: 0)
    let epoch = attachment.epoch
    let number = epoch.number
    openedEpoch = number
    streams.send(
      PublishOpened(
        epoch: number, grantedThrough: demand.grantedThrough, bytesThrough: demand.bytesThrough,
        nextSequence: attachment.nextSequence, lostFrom: topic.lost(of: known)),
      stream: stream)
    // The topic may have changed between the look-up and the entry in its list, and a source needs to know whether to start.
    topicChanged()
  }
}

extension PublishOpen.Acknowledgement {
  /// Whether records are acknowledged only when they are on disk.
  func waitsForDisk(of topic: Topic) -> Bool {
    topic.storage.map { $0.isSynchronous || self == .durable } ?? false
  }
}

extension StoreWaiter {
  /// A publication that waits for the store.
  ///
  /// - Parameter received: the number of records that the topic has from its producer.
  init(_ streams: StreamMultiplexer, _ stream: UInt32, topic: Topic, _ fault: Fault, received: UInt64) {
    self.init(
      carrier: streams.client.connection, user: streams.user(of: stream),
      identity: streams.client.identity.name,
      stream: stream,
      topic: topic.name, since: streams.loop.now,
      reason: fault.code == .storageFull ? .storageFull : .storageFailed, received: received)
  }
}
