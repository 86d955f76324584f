import SluiceIO
import Testing

@testable import SluiceCluster

@Suite("Which nodes are silent")
struct SilenceWatchTests {
  private static let lease = Duration.seconds(2)

  private static func time(_ milliseconds: Int) -> MonotonicTime {
    MonotonicTime(nanoseconds: UInt64(10_000 + milliseconds) * 1_000_000)
  }

  private static func entry(heard: Int, _ state: NodeRecord.State = .live) -> NodeEntry {
    NodeEntry(
      sequence: 1,
      record: NodeRecord(writer: 9, count: 1, session: 1, state: state, address: "a:1", version: "1"),
      heard: time(heard), lastSign: time(heard), since: time(heard))
  }

  /// The watch of node `a`, which the engine has served since 0.
  private static func watch() -> SilenceWatch {
    var watch = SilenceWatch(of: "a", lease: lease)
    watch.watched(since: time(-500))
    watch.valid(since: time(0))
    watch.met("b")
    return watch
  }

  @Test("a node that wasn't heard for a lease is silent, at the turn of this one")
  func silence() {
    let watch = Self.watch()
    let nodes = ["a": Self.entry(heard: 0), "b": Self.entry(heard: 1_000), "c": Self.entry(heard: 0, .ended)]
    #expect(watch.silent(among: nodes, isValid: true, at: Self.time(2_999)).isEmpty)
    // There are eight turns of 20 ms.
    #expect(watch.silent(among: nodes, isValid: true, at: Self.time(3_140)) == ["b"])
    let deadline = watch.deadline(nil, among: nodes, isValid: true, at: Self.time(2_500))
    let turn = (deadline ?? Self.time(0)) - Self.time(3_000)
    #expect((Duration.zero ... .milliseconds(140)).contains(turn))
    #expect(watch.silent(among: nodes, isValid: true, at: Self.time(3_000) + turn) == ["b"])
  }

  @Test("a node that the engine doesn't serve knows nothing of the others")
  func unserved() {
    var watch = Self.watch()
    let nodes = ["b": Self.entry(heard: -9_000)]
    let late = Self.time(9_000)
    #expect(watch.silent(among: nodes, isValid: false, at: late).isEmpty)
    #expect(watch.deadline(nil, among: nodes, isValid: false, at: late) == nil)
    watch.watched(since: nil)
    #expect(watch.silent(among: nodes, isValid: true, at: late).isEmpty)
    // Silence counts from the time at which the engine serves it again.
    watch.watched(since: late)
    #expect(watch.silent(among: nodes, isValid: true, at: late + .milliseconds(1_999)).isEmpty)
    #expect(watch.silent(among: nodes, isValid: true, at: late + .milliseconds(2_140)) == ["b"])
    watch.valid(since: nil)
    #expect(watch.silent(among: nodes, isValid: true, at: late + .seconds(9)).isEmpty)
  }

  @Test("all nodes that live are known after a lease")
  func allLive() {
    let watch = Self.watch()
    #expect(!watch.knowsAllLive(isValid: true, at: Self.time(1_999)))
    #expect(watch.knowsAllLive(isValid: true, at: Self.time(2_000)))
    #expect(!watch.knowsAllLive(isValid: false, at: Self.time(2_000)))
    #expect(watch.deadline(nil, among: [:], isValid: true, at: Self.time(1_000)) == Self.time(2_000))
    #expect(
      watch.deadline(Self.time(1_500), among: [:], isValid: true, at: Self.time(1_000)) == Self.time(1_500))
    #expect(watch.deadline(nil, among: [:], isValid: true, at: Self.time(2_000)) == nil)
  }
}
