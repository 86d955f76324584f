import Glibc
import SluiceNATS
import TestSupport
import Testing

@testable import SluiceCluster

/// The cost for the engine of three idle nodes with 64 shards: `SLUICE_CLUSTER_MEASURE=10` measures for ten seconds.
@Suite(
  "What idle nodes cost",
  .enabled(
    if: ClusterScript.hasEngine && getenv("SLUICE_CLUSTER_MEASURE") != nil,
    "SLUICE_CLUSTER_MEASURE=SECONDS measures"))
struct IdleMeasureTests {
  @Test("processor time and memory of the engine and of the nodes")
  func idle() throws {
    let seconds = getenv("SLUICE_CLUSTER_MEASURE").flatMap { Double(String(cString: $0)) } ?? 10
    let script = try ClusterScript()
    let engines = try script.run("up").engines
    let addresses = try engines.map { try NATSAddress(parsing: $0.address) }
    let password = try script.password
    measure("engine without nodes", engines.map(\.process), seconds)
    let members = try ["a", "b", "c"].map { try RealMember($0, engine: addresses, password: password) }
    try eventually("64 shards have owners") {
      members.allSatisfy {
        $0.status?.shards.allSatisfy { $0.state == .held } ?? false && $0.status?.shards.count == 64
      }
    }
    measure("engine with three nodes", engines.map(\.process), seconds)
    measure("the nodes and this test", [getpid()], seconds)
    let latency = members.compactMap { $0.status?.commitLatency }
    #expect(latency.count == 3)
    print("the last renewals took \(latency)")
    withExtendedLifetime(script) {}
  }

  private func measure(_ what: String, _ processes: [Int32], _ seconds: Double) {
    let before = processes.map(usage)
    pause(seconds)
    let after = processes.map(usage)
    let shares = zip(before, after).map { ($1.milliseconds - $0.milliseconds) / (seconds * 10) }
    print(
      "\(what): \(shares.map { "\(Double(Int($0 * 100)) / 100) %" }) of a core, \(after.map(\.megabytes)) MB")
  }

  private func usage(_ process: Int32) -> (milliseconds: Double, megabytes: Int) {
    guard let text = try? readFile("/proc/\(process)/stat") else { return (0, 0) }
    let fields = String(decoding: text, as: UTF8.self).split(separator: ")").last!.split(separator: " ")
    let ticks = (Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)
    return (ticks * 1_000 / Double(sysconf(Int32(_SC_CLK_TCK))), (Int(fields[21]) ?? 0) * 4 / 1_024)
  }
}
