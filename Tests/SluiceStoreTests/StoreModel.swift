import SluiceStore

/// The expected contents of a store, in the simplest form.
struct StoreModel {
  struct Record {
    var payload: [UInt8]
    var time: Int64
  }

  struct Batch {
    var offset: UInt64
    var records: [Record]
    /// The stored bytes.
    var bytes: [UInt8]

    var end: UInt64 { offset + UInt64(records.count) }
    var recordBytes: UInt64 { records.reduce(0) { $0 + 4 + UInt64($1.payload.count) } }
  }

  struct Topic {
    var row: StoredTopic
    /// The topic's first offset, and the bytes before it.
    var first: (offset: UInt64, bytes: UInt64) = (0, 0)
    /// All batches since the beginning.
    var batches: [Batch] = []
    /// The number of dropped batches.
    var dropped = 0
    var states: [StoredState.Kind: [[UInt8]: [UInt8]]] = [:]

    var kept: ArraySlice<Batch> { batches[dropped...] }

    var extent: StoredExtent {
      var extent = StoredExtent()
      extent.head = batches.last?.end ?? first.offset
      extent.firstOffset = kept.first?.offset ?? extent.head
      extent.bytesBefore = batches.prefix(dropped).reduce(first.bytes) { $0 + $1.recordBytes }
      extent.bytesThrough = batches.reduce(first.bytes) { $0 + $1.recordBytes }
      extent.lastTime = batches.last?.records.last?.time ?? .min
      return extent
    }

    func batches(from offset: UInt64) -> [StoredBatch] {
      kept.filter { $0.end > offset }.map { StoredBatch(offset: $0.offset, bytes: $0.bytes) }
    }

    func offset(atOrAfter time: Int64) -> UInt64? {
      for batch in kept {
        if let index = batch.records.firstIndex(where: { $0.time >= time }) {
          return batch.offset + UInt64(index)
        }
      }
      return nil
    }

    func states(_ kind: StoredState.Kind) -> [StoredState] {
      (states[kind] ?? [:]).map { StoredState(kind, key: $0, value: $1) }
        .sorted { $0.key.lexicographicallyPrecedes($1.key) }
    }

    mutating func truncate(before offset: UInt64) {
      while let first = kept.first, first.end <= offset { dropped += 1 }
    }
  }

  var topics: [TopicID: Topic] = [:]
  var nextTopic = TopicID(rawValue: 1)
  var wasClosed = true

  var contents: StoreContents {
    StoreContents(
      topics: topics.map { .init(id: $0, row: $1.row, extent: $1.extent) }.sorted { $0.id < $1.id },
      nextTopic: nextTopic, wasClosed: wasClosed)
  }
}
