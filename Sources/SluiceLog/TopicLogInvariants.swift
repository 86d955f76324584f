import SluiceWire
import Synchronization

extension TopicLog {
  /// Checks everything that must hold between two operations, by walking all of it. Compiled to nothing in release.
  func _checkInvariants() {
    #if DEBUG
      state.withLock { state in
        precondition(head == state.head)
        var next = state.oldest
        var time = Int64.min
        var recordBytes = 0
        var memoryBytes = 0
        for position in 0..<state.segments.count {
          let summary = state.segments[position]
          precondition(summary.baseOffset == next, "segments follow each other without a gap")
          precondition(!summary.segment.isRetired)
          summary._checkInvariants(previousTime: state.clock.setbacks.isEmpty ? time : .min)
          next = summary.endOffset
          time = summary.lastTime
          recordBytes += summary.recordBytes
          memoryBytes += summary.segment.capacity
        }
        precondition(next == state.head, "the last segment ends at the head")
        precondition(time <= state.clock.latest(from: state.oldest))
        precondition(state.clock.recordTime <= state.clock.now + RecordClock.step)
        precondition(recordBytes == state.recordBytes && memoryBytes == state.memoryBytes)
        precondition(state.segments.isEmpty == (memoryBytes == 0))
      }
    #endif
  }
}

#if DEBUG
  extension SegmentSummary {
    fileprivate func _checkInvariants(previousTime: Int64) {
      precondition(records > 0, "no segment is empty")
      precondition(position <= segment.capacity)
      precondition(segment.end == (records, position), "all written records are committed")
      var time = previousTime
      var place = Place(record: 0, position: 0, recordBytes: 0, time: .min)
      var entries = (0..<segment.indexCount.load(ordering: .acquiring)).map { unsafe segment.index[$0] }[...]
      precondition(entries.first?.position == 0 && entries.last.map { Int($0.position) } == indexedPosition)
      while place.position < position {
        if let entry = entries.first, Int(entry.position) == place.position {
          precondition(Int(entry.record) == place.record && Int(entry.recordBytes) == place.recordBytes)
          let next = unsafe RecordLayout.word(at: segment.memory + place.position)
          unsafe precondition(
            RecordLayout.isRecord(next)
              ? entry.time == time
              : entry.time == RecordLayout.time(ofMarkAt: segment.memory + place.position))
          entries.removeFirst()
        }
        let word = unsafe RecordLayout.word(at: segment.memory + place.position)
        precondition(place.position > 0 || !RecordLayout.isRecord(word), "a segment begins with a time mark")
        if RecordLayout.isRecord(word) {
          place.record += 1
          place.recordBytes += RecordLayout.itemSize(word)
        } else {
          let mark = unsafe RecordLayout.time(ofMarkAt: segment.memory + place.position)
          precondition(mark > time || (place.position == 0 && mark >= time), "times never go back")
          time = mark
        }
        place.position += RecordLayout.itemSize(word)
      }
      precondition(place.position == position && place.record == records && place.recordBytes == recordBytes)
      precondition(time == lastTime)
      precondition(entries.isEmpty, "every index entry is at an item")
    }
  }
#endif
