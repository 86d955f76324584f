import CXXHash
import SluiceWire

/// How topics travel from one store to another: a run of sections, each with its own checksum. <doc:Export> describes it byte by byte.
public enum ExportFormat {
  /// The first byte and the last are there so that a transfer as text is noticed.
  public static let magic: [UInt8] = [0x8B] + Array("SLUICE".utf8) + [0x0A]
  public static let version: UInt16 = 1
  /// The start of a stream: the magic, the version, and six zero bytes.
  public static let preambleSize = 16

  /// In front of a section's body: its kind, three bytes that are zero, and the length of the body.
  public static let sectionHeaderSize = 8
  /// Behind a section's body.
  public static let checksumSize = 8
  /// The longest body: of a batch with the longest record that there can be.
  public static let maximumBody = 0x4000_0000 + 1024

  /// The kind of a section. A reader that doesn't know a kind refuses the stream, or, from 128 on, skips the section.
  public enum Kind: UInt8, Sendable, CaseIterable {
    /// A topic begins.
    case topic = 1
    /// A batch of its records.
    case batch = 2
    /// One of its small states.
    case state = 3
    /// That was all of the topic.
    case topicEnd = 4
    /// That was all.
    case end = 5
  }

  static let leastOptionalKind: UInt8 = 128

  /// The checksum of a section's header and body, which are all of `bytes`. Sections can't change places unnoticed: their
  /// number counts.
  static func checksum(_ bytes: UnsafeRawBufferPointer, section: UInt64) -> UInt64 {
    unsafe xxh3_64bits(bytes.baseAddress!, bytes.count, section)
  }

  static var preamble: [UInt8] {
    var writer = ByteWriter()
    writer.bytes += magic
    writer.integer(version)
    writer.bytes += [UInt8](repeating: 0, count: 6)
    return writer.bytes
  }
}

/// A section of an export, decoded.
public enum ExportSection: Hashable, Sendable {
  case topic(StoredTopic)
  /// As in a store, but for the checksum, which is zero.
  case batch([UInt8])
  case state(StoredState)
  case topicEnd(TopicTotals)
  case end(Totals)
  /// One that can be left out.
  case other(UInt8)

  /// How much there was of a topic.
  public struct TopicTotals: Hashable, Sendable {
    public var batches: UInt64
    public var states: UInt64
    public var extent: StoredExtent

    public init(batches: UInt64, states: UInt64, extent: StoredExtent) {
      self.batches = batches
      self.states = states
      self.extent = extent
    }
  }

  /// How much there was of everything.
  public struct Totals: Hashable, Sendable {
    public var topics: UInt64
    public var batches: UInt64
    public var states: UInt64

    public init(topics: UInt64 = 0, batches: UInt64 = 0, states: UInt64 = 0) {
      self.topics = topics
      self.batches = batches
      self.states = states
    }
  }
}
