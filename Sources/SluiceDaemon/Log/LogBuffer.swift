/// Lines that wait to be written, up to a number of bytes; those that come beyond it are dropped, and counted.
///
/// What holds: lines stay in their order, and whole. A quarter of the room is for lines of the audit alone, which therefore are dropped only when even that is
/// taken, and other lines before them: as long as those of the audit that wait come to less than the quarter, none of them is. Once a line was dropped, no
/// other than those of the audit is taken until half of the room is free again; then it is told how many there were, so that who reads on reads that
/// once and not between any two lines.
struct LogBuffer {
  /// Lines that weren't taken.
  struct Dropped: Hashable {
    var lines = 0
    /// Those of them that belong to the audit.
    var audits = 0
  }

  static let standardCapacity = 1 << 20

  /// Bytes.
  var capacity: Int
  /// Bytes that wait, and those that are being written.
  private(set) var used = 0
  /// Lines that were ever dropped.
  private(set) var droppedLines = 0
  private var waiting: [UInt8] = []
  /// Those that weren't told yet.
  private var dropped = Dropped()

  init(capacity: Int = standardCapacity) {
    self.capacity = capacity
  }

  var isEmpty: Bool { used == 0 }

  /// - Parameter line: with its line break.
  mutating func add(_ line: String, isAudit: Bool) {
    let count = line.utf8.count
    let room = isAudit ? capacity : dropped.lines > 0 ? 0 : capacity - capacity / 4
    // One that is longer than the buffer is still written when nothing else is.
    guard used == 0 || count <= room - used else {
      dropped.lines += 1
      dropped.audits += isAudit ? 1 : 0
      droppedLines += 1
      return
    }
    waiting += line.utf8
    used += count
  }

  /// All that waits, to be written; empty when nothing does.
  mutating func take() -> [UInt8] {
    defer { waiting = [] }
    return waiting
  }

  /// So many bytes of what was taken have been written.
  ///
  /// - Parameter notice: the line that tells what was dropped, which is to be told now.
  mutating func wrote(_ count: Int, notice: (Dropped) -> String) {
    used -= count
    guard dropped.lines > 0, used <= capacity / 2 else { return }
    let line = notice(dropped)
    dropped = Dropped()
    waiting += line.utf8
    used += line.utf8.count
  }

  /// A pipe takes so many bytes at once, without those of another program between them.
  static let pieceSize = 4_096

  /// Where the piece that begins at `start` ends: lines are written whole, and as many at once as no others get between.
  static func endOfPiece(in bytes: [UInt8], from start: Int) -> Int {
    guard bytes.count - start > pieceSize else { return bytes.count }
    let end = start + pieceSize
    let lineBreak = UInt8(ascii: "\n")
    if let last = bytes[start..<end].lastIndex(of: lineBreak) { return last + 1 }
    return bytes[end...].firstIndex(of: lineBreak).map { $0 + 1 } ?? bytes.count
  }
}
