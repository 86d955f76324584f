import SluiceNATS
import SluiceStore
import Testing

@testable import SluiceCluster

@Suite("Finding out what became of commits")
struct OutcomeResolutionTests {
  private typealias Action = OutcomeResolution.Action
  private typealias End = OutcomeResolution.End

  private static func report(_ error: NATSError) -> StoreError {
    StoreError(error, "shard 5 can't be written")
  }

  private let timeout = NATSError(.timeout, "no answer")
  private let full = NATSError(.resourcesExhausted, "no room")
  private let wrong = NATSError(.wrongLastSequence, "another sequence")

  @Test("a stored barrier ends it")
  func barrier() {
    var resolution = OutcomeResolution(shard: "5")
    #expect(resolution.begin(timeout) == Self.report(timeout))
    #expect(
      resolution.barrierAnswered(.success(9), last: 8, isAllRefused: false) == Action.resume(barrier: 9))
    #expect(resolution.end() == End(wasDelayed: true, refusal: nil))
    // None of it remains for the next time.
    #expect(resolution.begin(wrong) == nil)
    #expect(resolution.end() == End(wasDelayed: false, refusal: nil))
  }

  @Test(
    "when another message has the barrier's sequence, what is there is read to its end, and a barrier written behind it"
  )
  func read() {
    var resolution = OutcomeResolution(shard: "5")
    #expect(resolution.begin(wrong) == nil)
    #expect(resolution.barrierAnswered(.failure(wrong), last: 8, isAllRefused: true) == Action.read(from: 9))
    #expect(resolution.read(.success(3), through: 20) == Action.read(from: 21))
    #expect(resolution.read(.success(0), through: 23) == Action.retry(nil))
    #expect(
      resolution.barrierAnswered(.success(24), last: 23, isAllRefused: false) == Action.resume(barrier: 24))
    #expect(resolution.end() == End(wasDelayed: false, refusal: nil))
  }

  @Test("a barrier or a read that fails is reported and tried again")
  func failures() {
    var resolution = OutcomeResolution(shard: "5")
    _ = resolution.begin(wrong)
    let again = Action.retry(Self.report(timeout))
    #expect(resolution.barrierAnswered(.failure(timeout), last: 8, isAllRefused: true) == again)
    #expect(resolution.read(.failure(timeout), through: 8) == again)
    #expect(resolution.end().wasDelayed)
    let fault = StoreError(.damaged, "unreadable")
    _ = resolution.begin(wrong)
    #expect(resolution.readFailed(fault) == Action.retry(fault))
    #expect(resolution.end().wasDelayed)
  }

  @Test("without room no barrier is needed once everything was refused, and the commits fail")
  func noRoom() {
    var resolution = OutcomeResolution(shard: "5")
    #expect(resolution.begin(full) == nil)
    let barrier = Result<UInt64, NATSError>.failure(full)
    #expect(
      resolution.barrierAnswered(barrier, last: 8, isAllRefused: false) == Action.retry(Self.report(full)))
    #expect(resolution.barrierAnswered(barrier, last: 8, isAllRefused: true) == Action.resume(barrier: nil))
    let end = resolution.end()
    #expect(end.refusal?.kind == .full && end.wasDelayed)
  }

  @Test("a commit that is too large for the engine fails, too")
  func tooLarge() {
    var resolution = OutcomeResolution(shard: "5")
    _ = resolution.begin(NATSError(.payloadTooLarge, "too large"))
    #expect(resolution.end().refusal?.kind == .full)
  }
}
