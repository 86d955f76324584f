import SluiceIO
import SluiceLog
import SluiceWire

/// The state that a topic's lock protects.
package struct TopicState {
  package var epoch: TopicEpoch
  /// The ID of the producer that ended this epoch or, if the topic starts over, the previous epoch; 0 for a producer without one.
  var endedBy: UInt64 = 0
  /// The head that the broker found in its store; nil for an epoch that it has begun itself, since no client can be ahead of that.
  var loadedHead: UInt64?
  /// The number of the epoch has changed, and isn't on disk yet.
  var isEpochUnsaved = false
  /// The last client that was ahead of the topic's records.
  var historyBreak: HistoryBreak?
  package var producers: ProducerTable
  package var cursors: CursorTable
  /// Nil while this node has the topic.
  package var departure: TopicDeparture?
  /// The quota of the connection that created the topic, while that connection is open.
  package var quota: TopicQuota?
  /// The name of the identity that may read the topic, for an inbox.
  package var owner: String?
  /// One for each loop with an attached stream.
  package var loopStates: [TopicLoopState] = []
  /// Subscriptions attached to any epoch.
  package var subscriptions = 0
  /// Subscriptions attached to the present epoch: they connect the topic, and keep it from starting over.
  var presentSubscriptions = 0
  /// The number of subscriptions that are notified of the number of publications.
  var producerWatchers = 0
  /// When the last producer left; nil while the topic has a producer, or never had one.
  var producersLostAt: MonotonicTime?
  /// Whether the timer runs that fails the topic if its producers stay lost.
  var isLossTimed = false
  /// When the first subscriber of the present epoch attached; nil before.
  var firstSubscribedAt: MonotonicTime?
  /// Whether a client has stated the settings, rather than the broker's defaults.
  package var isStated = false
  /// The offset at which the last subscriber left, or 0; valid while the topic has no subscriber.
  var lastSubscriberOffset: UInt64 = 0
  /// When a topic with automatic deletion was first found without attached streams.
  var unusedSince: MonotonicTime?
  package var isConnected: Bool
  /// How the settings pace producers. Stored here so that appending a batch reads it without counting references.
  var strategy: any FlowStrategy
  package var budget = PublishingBudget()
  /// The cause that stops producers now; the same as in ``Topic/holds``.
  package var hold: HoldLog.Cause?
  /// The groups of the present epoch, by name.
  package var groups: [String: Group] = [:]
  /// Changes that aren't on disk yet; nil for a topic that is in memory only.
  var tail: UncommittedTail?
  /// Why the store has rejected a change of this durable topic; nothing more is published to it then.
  var storeRejection: Fault?
  /// The traffic of loops that no longer have an attached stream.
  package var traffic = TrafficCount()
  /// The records that retention limits and trims have dropped in earlier epochs.
  var formerlyDropped = DroppedRecords()

  /// The offset from which no subscriber has read; nil while the topic has subscribers.
  var unreadFrom: UInt64? { presentSubscriptions == 0 ? lastSubscriberOffset : nil }

  func isEnded(by producer: UInt64) -> Bool {
    producer != 0 && (endedBy == producer || tail?.ending?.producer == producer) && departure == nil
  }

  package var isDeleted: Bool { departure == .deleted }

  /// Whether its streams have ended.
  package var isGone: Bool { departure?.isOver ?? false }

  /// The positions of the subscriptions on all loops and of the groups.
  package var readers: ReaderPositions {
    var readers = loopStates.reduce(into: ReaderPositions()) { $0.merge($1.positions) }
    for group in groups.values {
      if let position = group.flow.position { readers.add(position) }
    }
    return readers
  }
}
