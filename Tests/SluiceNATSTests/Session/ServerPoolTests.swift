import SluiceIO
import Testing

@testable import SluiceNATS

@Suite("Which NATS server is tried when")
struct ServerPoolTests {
  private let start = MonotonicTime(nanoseconds: 1_000)

  private func pool(
    _ count: Int, seed: UInt64 = 1, _ change: (inout NATSReconnectPolicy) -> Void = { _ in }
  ) -> NATSServerPool {
    var policy = NATSReconnectPolicy()
    change(&policy)
    return NATSServerPool((1...count).map { NATSAddress("h\($0)") }, policy: policy, seed: seed)
  }

  @Test("the order is another for each seed, and has each server once")
  func order() {
    let orders = Set((0..<50).map { seed in pool(3, seed: seed).servers.map(\.address.host) })
    #expect(orders.count == 6)
    #expect(Set(pool(3).servers.map(\.address.host)) == ["h1", "h2", "h3"])
  }

  @Test("each server is tried once a round, and rounds are farther and farther apart")
  func rounds() {
    var pool = pool(3) { $0.jitter = 0 }
    #expect(pool.start(at: start) == .connect)
    var now = start
    for expected in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
      var tried: Set<String> = [pool.current.address.host]
      #expect(pool.failed(at: now, isRefusal: false) == .connect)
      tried.insert(pool.current.address.host)
      #expect(pool.failed(at: now, isRefusal: false) == .connect)
      tried.insert(pool.current.address.host)
      #expect(tried.count == 3)
      #expect(pool.failed(at: now, isRefusal: false) == .wait(until: now + .milliseconds(expected)))
      now = now + .milliseconds(expected)
    }
    pool.connected()
    #expect(pool.failed(at: now, isRefusal: false) == .connect)
  }

  @Test("jitter leaves out a part of a wait, at random")
  func jitter() {
    var waits: Set<Duration> = []
    for seed in 0..<20 as Range<UInt64> {
      var pool = pool(1, seed: seed)
      guard case .wait(let time) = pool.failed(at: start, isRefusal: false) else {
        Issue.record("no wait")
        return
      }
      waits.insert(time - start)
    }
    #expect(waits.count > 10)
    #expect(waits.allSatisfy { $0 >= .milliseconds(25) && $0 <= .milliseconds(50) })
  }

  @Test("a lost server is tried last")
  func lost() {
    var pool = pool(3)
    pool.connected()
    let lost = pool.current
    _ = pool.lost(at: start)
    #expect(pool.servers.last == lost)
    #expect(pool.current != lost)
  }

  @Test("the search ends after the time that the policy says")
  func giveUp() {
    var pool = pool(2) { $0.giveUpAfter = .seconds(1) }
    _ = pool.start(at: start)
    #expect(pool.failed(at: start + .milliseconds(900), isRefusal: false) == .connect)
    #expect(pool.failed(at: start + .milliseconds(1_000), isRefusal: false) == .giveUp)
  }

  @Test("refusals end the search only if each server that answers refuses")
  func refusals() {
    var pool = pool(2) { $0.refusals = 2 }
    for _ in 0..<5 {
      _ = pool.failed(at: start, isRefusal: true)
      guard case .wait = pool.failed(at: start, isRefusal: false) else {
        Issue.record("a server that can't be reached may accept the credentials")
        return
      }
    }
    _ = pool.failed(at: start, isRefusal: true)
    _ = pool.failed(at: start, isRefusal: true)
    _ = pool.failed(at: start, isRefusal: true)
    #expect(pool.failed(at: start, isRefusal: true) == .giveUp)
  }

  @Test(
    "servers that are named are learnt and forgotten, given ones stay, and names of certificates are kept")
  func discovery() {
    var pool = NATSServerPool(
      [NATSAddress("cluster.example", requiresTLS: true)], policy: NATSReconnectPolicy(), seed: 1)
    pool.learn([
      "10.0.0.1:4222", "10.0.0.2:4222", "other.example:4222", "cluster.example:4222", "a b", "a:b",
    ])
    #expect(
      Set(pool.servers.map(\.address.host)) == ["cluster.example", "10.0.0.1", "10.0.0.2", "other.example"])
    #expect(pool.servers.allSatisfy { $0.address.requiresTLS })
    let names = Dictionary(uniqueKeysWithValues: pool.servers.map { ($0.address.host, $0.certificateName) })
    #expect(names["10.0.0.1"] == "cluster.example")
    #expect(names["other.example"] == "other.example")
    pool.learn(["10.0.0.2:4222"])
    #expect(Set(pool.servers.map(\.address.host)) == ["cluster.example", "10.0.0.2"])
    #expect(pool.current.address.host == "cluster.example")
  }
}
