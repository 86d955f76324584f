import Glibc
import SluiceClient
import SluiceWire
import TestSupport
import Testing

/// A cluster under load whose nodes and engine repeatedly lose processes, network links and power. No acknowledged record is lost, duplicated or out of order.
///
/// `SLUICE_CLUSTER_ROUNDS` sets the number of rounds, which cycle through the kinds of loss. `SLUICE_CLUSTER_KINDS` selects the kinds, separated by commas. By
/// default, six random kinds run once. `SLUICE_SEED` repeats a run, as far as the test itself is random. Prints a line for each round, one for each kind and
/// one for the whole run.
@Suite(
  .serialized, .onItsOwnThread, .enabled(if: ClusterStage.hasEngine, Comment(rawValue: ClusterStage.absence)))
struct ClusterKillTests {
  private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  /// The selected kinds of loss that this machine supports.
  private static func kinds() throws -> [ClusterLoss] {
    var kinds = ClusterLoss.allCases
    if let text = variable("SLUICE_CLUSTER_KINDS") {
      kinds = try text.split(separator: ",").map { name in
        guard let kind = ClusterLoss(rawValue: String(name)) else {
          throw TestFailure("SLUICE_CLUSTER_KINDS: there is no kind '\(name)'")
        }
        return kind
      }
    }
    for (reason, needs) in [
      (ClusterStage.cutObstacle, \ClusterLoss.isCut), (ClusterStage.powerObstacle, \.isLossOfPower),
    ] {
      guard let reason, kinds.contains(where: { $0[keyPath: needs] }) else { continue }
      print(
        "SKIPPED: \(kinds.filter { $0[keyPath: needs] }.map(\.rawValue).joined(separator: ", ")): \(reason)")
      kinds.removeAll { $0[keyPath: needs] }
    }
    return kinds
  }

  @Test func whatWasAcknowledgedSurvivesTheLossOfProcessesCablesAndPower() async throws {
    var random = SeededRandom.printed()
    var kinds = try Self.kinds()
    guard !kinds.isEmpty else { return }
    if Self.variable("SLUICE_CLUSTER_ROUNDS") == nil, Self.variable("SLUICE_CLUSTER_KINDS") == nil {
      // A run of all tests has ten minutes.
      kinds = Array(kinds.shuffled(using: &random).prefix(6))
    }
    let rounds = Self.variable("SLUICE_CLUSTER_ROUNDS").flatMap { Int($0) } ?? kinds.count
    let stage = try ClusterStage(isFragile: true)
    let load = try await ClusterLoad(stage, topics: 9, random: &random)
    try load.work(120)
    let losses = ClusterLosses(stage: stage, load: load)
    var pauses: [ClusterLoss: [ClusterPause]] = [:]
    for round in 0..<rounds {
      let kind = kinds[round % kinds.count]
      let number = Int(random.next() % 3)
      let pause = try await losses.take(kind, number, backlog: random.next() % 40)
      pauses[kind, default: []].append(pause)
      print("round \(round + 1): \(kind.rawValue) of number \(number + 1), \(pause)")
      // Show progress during the run, also in a file.
      fflush(nil)
      try stage.up()
      try load.work(60 + random.next() % 60)
    }
    let findings = try await load.finish()
    for kind in ClusterLoss.allCases {
      if let pauses = pauses[kind] { print("\(kind.rawValue): \(ClusterPause.summary(of: pauses))") }
    }
    print("\(rounds) rounds: \(findings)")
    for detail in findings.details { print(detail) }
    #expect(findings.isClean)
    for client in load.clients { client.close() }
  }
}
