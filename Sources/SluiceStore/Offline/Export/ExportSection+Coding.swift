import SluiceWire

// MARK: Writing

extension ExportSection {
  /// The section's kind, and its body behind what is in `writer`.
  func encodeBody(into writer: inout ByteWriter) -> UInt8 {
    switch self {
    case .topic(let row):
      writer.bytes += row.encoded()
      return ExportFormat.Kind.topic.rawValue
    case .batch(let value):
      writer.bytes += value[Self.batchChecksumSize...]
      return ExportFormat.Kind.batch.rawValue
    case .state(let state):
      writer.integer(state.kind.rawValue)
      writer.integer(UInt8(clamping: state.key.count))
      writer.bytes += state.key.prefix(Int(UInt8.max))
      writer.bytes += state.value
      return ExportFormat.Kind.state.rawValue
    case .topicEnd(let totals):
      writer.integer(totals.batches)
      writer.integer(totals.states)
      writer.integer(totals.extent.firstOffset)
      writer.integer(totals.extent.head)
      writer.integer(totals.extent.bytesBefore)
      writer.integer(totals.extent.bytesThrough)
      writer.integer(totals.extent.lastTime)
      return ExportFormat.Kind.topicEnd.rawValue
    case .end(let totals):
      writer.integer(totals.topics)
      writer.integer(totals.batches)
      writer.integer(totals.states)
      return ExportFormat.Kind.end.rawValue
    case .other(let kind): return kind
    }
  }

  /// The size of the prefix of stored batches, which exported ones don't have: it depends on the topic's number in the
  /// store.
  package static let batchChecksumSize = 8
}

// MARK: Reading

extension ExportSection {
  /// - Throws: ``StoreError/Kind/damaged``; ``StoreError/Kind/newer`` for what this version doesn't know.
  public init(kind: UInt8, body: UnsafeRawBufferPointer) throws(StoreError) {
    guard let known = ExportFormat.Kind(rawValue: kind) else {
      guard kind >= ExportFormat.leastOptionalKind else {
        throw StoreError(.newer, "sections of kind \(kind) aren't known to this version")
      }
      self = .other(kind)
      return
    }
    var reader = unsafe ByteReader(body)
    do throws(WireError) {
      switch known {
      case .topic:
        self = unsafe .topic(try Self.row(body))
        return
      case .batch:
        self = unsafe .batch(try Self.batch(body))
        return
      case .state:
        self = .state(try Self.state(&reader))
        return
      case .topicEnd:
        self = .topicEnd(try Self.topicEnd(&reader))
      case .end:
        self = .end(
          Totals(
            topics: try reader.integer("topics"), batches: try reader.integer("batches"),
            states: try reader.integer("states")))
      }
      guard reader.count == 0 else {
        throw WireError(.malformedFrame, "\(reader.count) bytes are left behind it")
      }
    } catch {
      throw StoreError(error.code == .unsupported ? .newer : .damaged, error.message)
    }
  }

  private static func row(_ body: UnsafeRawBufferPointer) throws(WireError) -> StoredTopic {
    do throws(StoreError) {
      return try unsafe StoredTopic(decoding: body)
    } catch {
      throw WireError(error.kind == .newer ? .unsupported : .malformedFrame, error.message)
    }
  }

  private static func batch(_ body: UnsafeRawBufferPointer) throws(WireError) -> [UInt8] {
    guard body.count > BatchHeader.size - batchChecksumSize else {
      throw WireError(.malformedFrame, "\(body.count) bytes can't hold a record")
    }
    var value = [UInt8]()
    value.reserveCapacity(batchChecksumSize + body.count)
    value += [UInt8](repeating: 0, count: batchChecksumSize)
    unsafe value += body
    return value
  }

  private static func state(_ reader: inout ByteReader) throws(WireError) -> StoredState {
    let number: UInt8 = try reader.integer("kind")
    guard let kind = StoredState.Kind(rawValue: number) else {
      throw WireError(.unsupported, "states of kind \(number) aren't known to this version")
    }
    let length: UInt8 = try reader.integer("key length")
    guard length > 0 else { throw WireError(.malformedFrame, "the state's key is empty") }
    let key = unsafe Array(try reader.bytes("key", count: Int(length)))
    return unsafe StoredState(kind, key: key, value: Array(reader.remaining))
  }

  private static func topicEnd(_ reader: inout ByteReader) throws(WireError) -> TopicTotals {
    let batches: UInt64 = try reader.integer("batches")
    let states: UInt64 = try reader.integer("states")
    var extent = StoredExtent()
    extent.firstOffset = try reader.integer("first offset")
    extent.head = try reader.integer("head")
    extent.bytesBefore = try reader.integer("bytes before")
    extent.bytesThrough = try reader.integer("bytes through")
    extent.lastTime = try reader.integer("last time")
    return TopicTotals(batches: batches, states: states, extent: extent)
  }
}
