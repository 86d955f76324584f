import Foundation
import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct RecordTests {
  struct Trouble: Error, Codable, Equatable {
    var text: String
  }

  private typealias Numbers = Record<Int, Oops>

  @Test func deliversWhatWasRecorded() {
    let record = Numbers { recording in
      recording.receive(1)
      recording.receive(2)
      recording.receive(3)
      recording.receive(completion: .failure(Oops(number: 4)))
    }
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
    record.subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("[1, 2, 3]"), .value(1)])
    subscriber.subscription?.request(.max(2))
    #expect(subscriber.history.take() == [.value(2), .value(3), .failed(Oops(number: 4))])
    record.subscribe(TrackingSubscriber(.unlimited, history: subscriber.history))
    #expect(subscriber.history.take().count == 5)
  }

  @Test func finishesUnlessSomethingElseIsRecorded() {
    let subscriber = TrackingSubscriber<Int, Oops>(.unlimited)
    Numbers { $0.receive(1) }.subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("[1]"), .value(1), .finished])
  }

  @Test func anEmptyRecordingEndsAtOnce() {
    let subscriber = TrackingSubscriber<Int, Oops>()
    Numbers(output: [], completion: .failure(Oops(number: 1))).subscribe(subscriber)
    #expect(subscriber.history.take() == [.subscription("Empty"), .failed(Oops(number: 1))])
  }

  @Test func deliversNothingAfterCancellation() {
    let subscriber = TrackingSubscriber<Int, Oops>(.max(1))
    Numbers(output: [1, 2], completion: .finished).subscribe(subscriber)
    subscriber.subscription?.cancel()
    subscriber.subscription?.request(.max(1))
    #expect(subscriber.history.take() == [.subscription("[1, 2]"), .value(1)])
    #expect(subscriber.subscription.map { "\($0)" } == "Cancelled Events")
  }

  @Test func showsValuesAndCompletion() {
    let subscriber = TrackingSubscriber<Int, Oops>()
    Numbers(output: [1, 2], completion: .finished).subscribe(subscriber)
    let mirror = Mirror(reflecting: subscriber.subscription!)
    #expect(mirror.children.map(\.label) == ["sequence", "completion"])
    #expect(mirror.descendant("sequence") as? [Int] == [1, 2])
  }

  @Test func releasesItsSubscriber() {
    var released = 0
    for isCancelled in [true, false] {
      let subscriber = TrackingSubscriber<Int, Oops>()
      subscriber.onDeinit = { released += 1 }
      Numbers(output: [1], completion: .finished).subscribe(subscriber)
      if isCancelled { subscriber.subscription?.cancel() } else { subscriber.subscription?.request(.max(1)) }
    }
    #expect(released == 2)
  }

  @Test func isDecodedAsItWasEncoded() throws {
    let record = Record<Int, Trouble>(output: [1, 2], completion: .failure(Trouble(text: "no")))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let data = try encoder.encode(record)
    #expect(
      String(decoding: data, as: UTF8.self)
        == #"{"recording":{"completion":{"error":{"text":"no"},"success":false},"output":[1,2]}}"#)
    let decoded = try JSONDecoder().decode(Record<Int, Trouble>.self, from: data).recording
    #expect(decoded.output == [1, 2])
    #expect(decoded.completion == .failure(Trouble(text: "no")))
  }

  @Test func aCompleteRecordingTakesNothingMore() async {
    await #expect(processExitsWith: .failure) {
      var recording = Record<Int, Never>.Recording(output: [1])
      recording.receive(2)
    }
    await #expect(processExitsWith: .failure) {
      var recording = Record<Int, Never>.Recording()
      recording.receive(completion: .finished)
      recording.receive(completion: .finished)
    }
  }
}
