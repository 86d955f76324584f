import SluiceIO
import SluiceStore
import SluiceWire

extension EngineStore {
  /// The stored topics.
  var contents: StoreContents { topics.contents }

  func states(of topic: TopicID, _ kind: StoredState.Kind) -> [StoredState] {
    guard let known = topics[topic], known.isStored else { return [] }
    return known.states(kind)
  }

  func extent(of topic: TopicID) throws(StoreError) -> StoredExtent? {
    topics[topic].flatMap { $0.isStored ? $0.extent : nil }
  }

  func headers(of topic: TopicID, from offset: UInt64, _ body: (BatchHeader) -> Bool) throws(StoreError) {
    guard let known = topics[topic], offset < known.extent.head else { return }
    let entries = known.index.entries(from: max(offset, known.extent.firstOffset))
    if entries.isEmpty { readFront(of: topic, behind: offset) }
    for entry in entries where entry.header.endOffset <= known.extent.head {
      guard body(entry.header) else { return }
    }
  }

  /// Reads the places of the topic's oldest batches, up to the batch of that offset.
  func readFront(of id: TopicID, behind offset: UInt64) {
    guard !isReadingFront, let topic = topics[id] else { return }
    isReadingFront = true
    let scan = BatchScan(id, from: topic.index.frontEnd(floor: topic.floor), self)
    // Also reads some of the following batches, which will be needed soon.
    var ahead = 64
    unsafe scan.run(
      bytes: 4 << 20,
      { [self] header, sequence, _ in
        guard header.endOffset > topics[id]?.extent.firstOffset ?? .max else { return true }
        topics[id]?.index.extendFront(.init(header: header, sequence: sequence))
        if header.endOffset > offset { ahead -= 1 }
        return ahead > 0
      }
    ) { [self] error in
      isReadingFront = false
      guard mode != .fenced, mode != .closed else { return }
      if error == nil { return pump() }
      _ = loop.schedule(after: .milliseconds(50)) { [weak self] in self?.pump() }
    }
  }

  func read(
    _ topic: TopicID, from offset: UInt64, bytes: Int,
    each: @escaping @Sendable (UInt64, UnsafeRawBufferPointer) -> Bool,
    _ done: @escaping @Sendable (StoreError?) -> Void
  ) {
    loop.execute { [self] in
      unsafe EngineRead(topic, from: offset, bytes: bytes, self, each, done).run()
    }
  }

  func find(
    _ time: Int64, in topic: TopicID, within span: Range<UInt64>,
    _ done: @escaping @Sendable (Result<UInt64?, StoreError>) -> Void
  ) {
    loop.execute { [self] in EngineSearch(time, in: topic, within: span, self, done).run() }
  }
}
