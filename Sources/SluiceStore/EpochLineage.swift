import SluiceWire

// Which epochs a topic's present one continues, and up to where. Brokers, imports and restores all answer and change that here.

extension StoredTopic {
  /// An epoch that a later one continues.
  public struct Ancestor: Hashable, Sendable {
    public var epoch: UInt64
    /// The offset of the first record that the later epoch doesn't share with what clients may know of this one.
    public var end: UInt64
    /// Clients that know the records before at most this offset know the same as the later epoch has. At least ``end``; more if a client has shown a
    /// different history after this epoch had continued from ``end``.
    public var through: UInt64

    public init(epoch: UInt64, end: UInt64, through: UInt64? = nil) {
      self.epoch = epoch
      self.end = end
      self.through = Swift.max(through ?? end, end)
    }

    /// Where a client that knows the records of this epoch before `offset` stands in the later one.
    func position(of offset: UInt64) -> UInt64 { offset <= through ? offset : end }
  }

  /// Epochs that are remembered. A subscriber that returns from an older one starts over.
  static let longestLineage = 64

  /// Begins another epoch of the same topic, which continues the present one.
  ///
  /// An epoch of a compact topic continues none: a lost record may have replaced an existing one, and clients that have the lost one would never get the
  /// other. They start over.
  ///
  /// - Parameters:
  ///   - epoch: the number of the new epoch.
  ///   - end: where the two part: records from there on that clients know of the present epoch aren't in the new one.
  ///   - through: see ``Ancestor/through``; nil for `end`.
  public mutating func begin(epoch: UInt64, continuingUpTo end: UInt64, through: UInt64? = nil) {
    lineage.add(
      Ancestor(epoch: self.epoch, end: end, through: through), isCompact: settings.compact == true)
    self.epoch = epoch
  }

  /// Adds the epochs of a replaced topic that began after this topic's, so that its clients continue at the point where the histories part.
  ///
  /// - Parameter head: the offset of the next record of this topic.
  mutating func adoptEpochs(of replaced: StoredTopic, head: UInt64) {
    let known = replaced.lineage + [Ancestor(epoch: replaced.epoch, end: .max)]
    guard settings.compact != true, let own = known.firstIndex(where: { $0.epoch == epoch }) else { return }
    var end = head
    var later: [Ancestor] = []
    for index in known.indices.dropFirst(own + 1) {
      end = Swift.min(end, known[index - 1].end)
      later.append(Ancestor(epoch: known[index].epoch, end: end))
    }
    // An ancestor's position passes through those behind it, whose ends mustn't be lower.
    lineage += later.reversed()
    lineage.shorten()
  }
}

extension [StoredTopic.Ancestor] {
  /// Returns where a client that knows the records of `epoch` before `offset` stands in the present epoch; nil if that doesn't continue `epoch`.
  public func position(of offset: UInt64, in epoch: UInt64) -> UInt64? {
    guard let index = firstIndex(where: { $0.epoch == epoch }) else { return nil }
    // Records behind the end of an ancestor are lost, also those that the client has received.
    return self[index...].reduce(offset) { $1.position(of: $0) }
  }

  /// Adds the epoch that a new one continues. That of a compact topic continues none.
  public mutating func add(_ former: StoredTopic.Ancestor, isCompact: Bool) {
    if isCompact { return removeAll() }
    append(former)
    shorten()
  }

  fileprivate mutating func shorten() {
    if count > StoredTopic.longestLineage { removeFirst(count - StoredTopic.longestLineage) }
  }
}
