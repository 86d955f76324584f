import Glibc
import PortableCombine
import SluiceClient

/// Jobs that are shared among workers, each done once. Failed jobs are retried, then dead-lettered.
///
///     sluiced &
///     swift run WorkQueue                     # afterwards: sluice sub jobs.dead --until-live
///
/// Three workers, one of them slow, are members of a group: the worker that has waited longest gets the next job. Every fifth job fails the first time and is
/// delivered again; job 7 always fails, and goes to the dead-letter topic after three deliveries. More workers may be started anywhere:
/// `sluice sub jobs --group workers --ack explicit --deliveries 3 --dead-letters jobs.dead --exec ./work.sh`.
@main
enum WorkQueue {
  private static let jobs = 20
  private static let options = GroupOptions(
    acknowledgement: .explicit, deliveries: 3, deadLetters: "jobs.dead")

  static func main() async {
    do {
      try await run(server: CommandLine.arguments.dropFirst().first ?? "127.0.0.1:7420")
    } catch {
      // An error thrown by main() would trap.
      print("WorkQueue: \(error)")
      exit(1)
    }
  }

  private static func run(server: String) async throws {
    let client = try await Client.connect(to: server)
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      let tally = Tally()
      for (worker, time) in [("ada", 20), ("bob", 30), ("cleo", 150)] {
        tasks.addTask {
          try await work(client, worker, .milliseconds(time), tally)
        }
      }
      let subject = client.subject("jobs")
      for job in 1...jobs { try await subject.publish(Message("\(job)", key: "job")) }
      // The group and its jobs stay; only these workers leave.
      while await tally.settled < jobs { try await Task.sleep(for: .milliseconds(20)) }
      tasks.cancelAll()
      try await tasks.waitForAll()
      print(await tally.summary)
    }
  }

  private static func work(
    _ client: Client, _ worker: String, _ time: Duration, _ tally: Tally
  ) async throws {
    for try await delivery in client.group("workers", of: "jobs", options: options).values {
      let job = Int(delivery.record.string) ?? 0
      try? await Task.sleep(for: time)
      let fails = job == 7 || (job % 5 == 0 && delivery.count == 1)
      print(
        "\(worker) \(fails ? "failed at" : "did") job \(job)\(delivery.count > 1 ? ", time \(delivery.count)" : "")"
      )
      if fails { delivery.retry() } else { delivery.acknowledge() }
      if !fails || delivery.count == 3 { await tally.settle(worker, isDone: !fails) }
    }
  }
}

/// Counts the jobs of each worker.
private actor Tally {
  private var done: [String: Int] = [:]
  private var dead = 0

  var settled: Int { done.values.reduce(dead, +) }

  var summary: String {
    done.sorted { $0.key < $1.key }.map { "\($0.key) did \($0.value)" }.joined(separator: ", ")
      + "; \(dead) put aside in jobs.dead"
  }

  func settle(_ worker: String, isDone: Bool) {
    if isDone { done[worker, default: 0] += 1 } else { dead += 1 }
  }
}
