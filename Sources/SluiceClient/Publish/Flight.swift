/// Records that were sent and aren't acknowledged, in the runs in which they travelled.
struct Flight {
  /// Records that were sent together.
  struct Run: Equatable {
    /// Their places in the ``RecordStore``.
    var start: Int
    var end: Int
    var count: UInt64
    /// The sequence behind the last of them.
    var through: UInt64

    var first: UInt64 { through - count }
  }

  /// Under way on the present stream.
  var sent = Queue<Run>()
  /// Were under way when the connection was lost, and are to be sent again. Behind the others.
  private(set) var again = Queue<Run>()
  /// Of both.
  var byteCount = 0

  /// The place of the first record.
  var start: Int? { sent.first?.start ?? again.first?.start }

  /// Nothing of what was under way is any more.
  mutating func interrupt() {
    while let run = again.popFirst() { sent.append(run) }
    swap(&sent, &again)
  }

  /// The broker has everything before that sequence. A run that it has only a part of is kept whole while it is under way, and cut when
  /// it is to be sent again.
  mutating func acknowledge(through sequence: UInt64, _ store: RecordStore) {
    while let run = sent.first, run.through <= sequence {
      sent.removeFirst()
      byteCount -= run.end - run.start
    }
    guard sent.isEmpty else { return }
    while var run = again.first, run.first < sequence {
      if run.through <= sequence {
        again.removeFirst()
        byteCount -= run.end - run.start
        continue
      }
      let before = run.start
      while run.first < sequence {
        run.start = store.next(run.start)
        run.count -= 1
      }
      byteCount -= run.start - before
      again.first = run
    }
  }

  /// Takes the next run to be sent again, or what of it is allowed. It is under way then.
  mutating func resend(_ store: RecordStore, records: UInt64, bytes: Int) -> Run? {
    guard var run = again.first else { return nil }
    let cut = store.cut(from: run.start, to: run.end, of: run.count, records: records, bytes: bytes)
    let part = Run(start: run.start, end: cut.end, count: cut.count, through: run.first + cut.count)
    if cut.count == run.count {
      again.removeFirst()
    } else {
      run.start = cut.end
      run.count -= cut.count
      again.first = run
    }
    sent.append(part)
    return part
  }
}
