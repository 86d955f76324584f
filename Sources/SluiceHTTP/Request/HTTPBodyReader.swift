/// Collects a body, by its length or in chunks.
struct HTTPBodyReader {
  private enum State {
    case counted(Int)
    /// The line with a chunk's size.
    case size([UInt8])
    case chunk(Int)
    /// The line end after a chunk, of which that many bytes have been read.
    case chunkEnd(Int)
    /// The fields after the last chunk, up to an empty line.
    case trailer([UInt8])
    case done
  }

  private var state: State
  private let limit: Int
  private(set) var body: [UInt8] = []

  /// - Parameter length: nil for a body in chunks.
  init(length: Int?, limit: Int) {
    state = length.map { $0 == 0 ? .done : .counted($0) } ?? .size([])
    self.limit = limit
  }

  var isDone: Bool { if case .done = state { true } else { false } }

  /// Reads bytes. Returns how many.
  mutating func take(_ bytes: ArraySlice<UInt8>) throws(HTTPProblem) -> Int {
    var rest = bytes
    while let next = rest.first {
      switch state {
      case .done: return bytes.count - rest.count
      case .counted(let left):
        let part = rest.prefix(left)
        try append(part)
        rest = rest.dropFirst(part.count)
        state = part.count == left ? .done : .counted(left - part.count)
      case .chunk(let left):
        let part = rest.prefix(left)
        try append(part)
        rest = rest.dropFirst(part.count)
        state = part.count == left ? .chunkEnd(0) : .chunk(left - part.count)
      case .chunkEnd(let count):
        guard next == (count == 0 ? 0x0D : 0x0A) else {
          throw HTTPProblem(400, "a chunk is longer than it says")
        }
        rest = rest.dropFirst()
        state = count == 0 ? .chunkEnd(1) : .size([])
      case .size(var line):
        rest = rest.dropFirst()
        line.append(next)
        guard line.count <= 64 else { throw HTTPProblem(400, "a chunk's size can't be read") }
        state = .size(line)
        guard next == 0x0A else { continue }
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x0D && $0 != 0x20 }
        guard line.suffix(2) == [0x0D, 0x0A], let size = HexDigits.number(digits) else {
          throw HTTPProblem(400, "a chunk's size can't be read")
        }
        guard size <= limit else { throw Self.tooLarge(limit) }
        state = size == 0 ? .trailer([]) : .chunk(size)
      case .trailer(var line):
        rest = rest.dropFirst()
        if next == 0x0A {
          state = line == [0x0D] ? .done : .trailer([])
        } else {
          line.append(next)
          guard line.count <= 1024 else { throw HTTPProblem(400, "the trailer is too long") }
          state = .trailer(line)
        }
      }
    }
    return bytes.count
  }

  static func tooLarge(_ limit: Int) -> HTTPProblem {
    HTTPProblem(413, "the body has more than \(limit) bytes, which is the limit; send several requests")
  }

  private mutating func append(_ bytes: ArraySlice<UInt8>) throws(HTTPProblem) {
    guard body.count + bytes.count <= limit else { throw Self.tooLarge(limit) }
    body += bytes
  }
}
