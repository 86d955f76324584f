import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceWire

struct StatusCommand: Command {
  let asJSON: Bool

  static let page = CommandPage(
    "sluice status", summary: "show the broker's state and problems", options: [TopicCommand.json],
    details: """
      Needs the permission to administer every topic: admin on >. Ends with 1 if there is a critical problem, such as a full or failing store, full memory, records \
      that subscribers have missed, or a node that isn't ready. Warnings, such as lag or rejected logins, don't change the exit code, nor do topics with blocked \
      producers. More than 20 problems are summarized by kind.

      For a node of a cluster it also prints the node's name and state, the number of live nodes, how many shards the node owns, and how many have no owner.
      """,
    examples: [
      "Is everything in order?": "sluice status",
      "Critical problems, for a script.": "sluice status --json | jq .problems",
      "Which topics need attention?":
        "sluice status --json | jq -r '.attention[] | select(.topic) | .topic' | sort -u",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.brokerInfo { result in
        switch result {
        case .failure(let error): run.fail(error)
        case .success(let info):
          // A single-node broker refuses this request.
          client.cluster { cluster in
            print(
              BrokerStatus(info, of: client.broker.software, at: run.server, cluster: try? cluster.get()), run
            )
          }
        }
      }
    }
  }

  private func print(_ status: BrokerStatus, _ run: Run) {
    guard run.write(asJSON ? status.object.line : status.text) else { return }
    run.finish(status.problems.isEmpty ? .success : .failure)
  }
}

/// The output of `sluice status`.
struct BrokerStatus {
  /// The most topics with blocked producers in the text.
  private static let shown = 8
  /// The most problems that the text lists; more are summarized by kind.
  private static let mostProblems = 20

  private let info: BrokerInfo
  private let software: String
  private let server: SocketAddress
  private let cluster: ClusterInfo?

  /// - Parameters:
  ///   - info: the broker's answer.
  ///   - software: the broker's software and version.
  ///   - server: its address.
  ///   - cluster: the state of its cluster; nil for a single-node broker.
  init(
    _ info: BrokerInfo, of software: String, at server: SocketAddress, cluster: ClusterInfo? = nil
  ) {
    self.info = info
    self.software = software
    self.server = server
    self.cluster = cluster
  }

  private func number(_ name: String) -> UInt64 { info[name] ?? 0 }

  /// Sentences about the critical problems that the broker has found; without any, problems derived from its numbers.
  var problems: [String] {
    let critical = found(.critical)
    return critical.isEmpty ? apparent : critical
  }

  /// Problems derived from the broker's numbers, since it may not have looked for problems yet.
  private var apparent: [String] {
    var problems: [String] = []
    let since = TimeSpan.rounded(.milliseconds(Int64(clamping: info.storage.since)))
    switch info.storage.state {
    case .full:
      problems.append(
        "the storage has been full for \(since): publishing to durable topics is paused; delete or trim topics, or raise --storage-limit"
      )
    case .failing:
      problems.append(
        "the storage has failed for \(since): publishing to durable topics is paused; see the broker's log")
    default: break
    }
    let (used, ceiling) = (number("memory_used"), number("memory_ceiling"))
    if ceiling > 0, used >= ceiling {
      problems.append(
        "memory is at its ceiling of \(ByteSize.rounded(ceiling)): producers of topics in memory are blocked; delete or trim topics, or raise --memory"
      )
    }
    return problems
  }

  /// Sentences about the problems of this severity that the broker has found. Many problems are summarized by kind, each with the most urgent one.
  private func found(_ severity: BrokerInfo.Problem.Severity) -> [String] {
    let all = info.problemKinds.reduce(0) { $0 + Int($1.count) }
    guard all > Self.mostProblems else {
      return info.problems.filter { $0.severity == severity }.map(\.sentence)
    }
    return info.problemKinds.filter { $0.severity == severity }.map { kind in
      guard kind.count > 1, let first = info.problems.first(where: { $0.kind == kind.kind }) else {
        return kind.sentence
      }
      return "\(kind.sentence) \(first.sentence)"
    }
  }

  var text: String {
    let grouped = { (name: String) in Magnitude.grouped(number(name)) }
    let bytes = { (name: String) in ByteSize.rounded(number(name)) }
    // "1 subscription", "2 subscriptions".
    let counted = { (name: String) in
      "\(grouped(name)) " + (number(name) == 1 ? String(name.dropLast()) : name)
    }
    var rows = [
      [
        "broker",
        "\(software) at \(server), up \(TimeSpan.rounded(.milliseconds(Int64(clamping: info.uptime))))",
      ],
      ["connections", "\(grouped("connections")), \(grouped("connections_accepted")) since the start"],
      ["topics", grouped("topics")],
      ["streams", "\(counted("subscriptions")), \(counted("publications"))"],
      [
        "published",
        "\(grouped("records_received")) records since the start, \(bytes("bytes_received")) received in all",
      ],
      [
        "delivered", "\(grouped("records_sent")) records since the start, \(bytes("bytes_sent")) sent in all",
      ],
      ["memory", memory],
    ]
    if let cluster { rows.insert(contentsOf: ClusterTable.summary(cluster), at: 1) }
    if let storage = TopicTable.storage(info.storage) { rows.append(["storage", storage]) }
    let refused = number("failed_authentications") + number("denied_permissions")
    if refused > 0 {
      rows.append([
        "rejected",
        "\(grouped("failed_authentications")) logins, \(grouped("denied_permissions")) requests without permission",
      ])
    }
    let troubles =
      problems.map { ["problem", $0] } + stopped.map { ["blocked", $0] }
      + found(.warning).map { ["warning", $0] }
    rows += troubles.isEmpty ? [["problems", "none"]] : troubles
    return TextTable.render(rows, leftColumns: 2)
  }

  private var memory: String {
    let ceiling = number("memory_ceiling")
    let used = ByteSize.rounded(number("memory_used"))
    return ceiling == 0 ? "\(used), without a ceiling" : "\(used) of \(ByteSize.rounded(ceiling))"
  }

  private var stopped: [String] {
    var lines = info.stoppedTopics.prefix(Self.shown).map { topic in
      "producers of \(topic.topic) for \(TimeSpan.rounded(.milliseconds(Int64(clamping: topic.milliseconds)))), by \(StorageText.reason(topic.reason))"
    }
    let rest = Int(info.stopped) - lines.count
    if rest > 0 { lines.append("and \(rest) more topic\(rest == 1 ? "" : "s")") }
    return lines
  }

  var object: JSON {
    [
      "server": .text("\(server)"), "software": .text(software), "uptime_ms": .number(info.uptime),
      "problems": .array(problems.map { .text($0) }),
      "attention": .array(
        info.problems.map {
          [
            "severity": .text($0.severity == .critical ? "critical" : "warning"),
            "since_ms": .number($0.since), "sentence": .text($0.sentence), "kind": .text($0.kind),
            "topic": $0.topic.isEmpty ? nil : .text($0.topic),
            "consumer": $0.consumer.isEmpty ? nil : .text($0.consumer),
            "connection": $0.connection == 0 ? nil : .number($0.connection),
          ]
        }),
      "problem_kinds": .array(
        info.problemKinds.map {
          [
            "kind": .text($0.kind), "severity": .text($0.severity == .critical ? "critical" : "warning"),
            "since_ms": .number($0.since), "count": .number($0.count), "sentence": .text($0.sentence),
          ]
        }), "cluster": cluster.map(ClusterTable.summaryObject), "stopped": .number(info.stopped),
      "stopped_topics": .array(
        info.stoppedTopics.map {
          [
            "topic": .text($0.topic), "reason": .text(StorageText.reason($0.reason)),
            "for_ms": .number($0.milliseconds),
          ]
        }), "storage": .textOrNull(info.storage.state == .none ? nil : StorageText.state(info.storage.state)),
      "numbers": .object(info.numbers.map { ($0.name, .number($0.value)) }),
    ]
  }
}
