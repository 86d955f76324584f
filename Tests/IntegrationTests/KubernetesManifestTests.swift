import Foundation
import TestSupport
import Testing

/// The manifests in `packaging/kubernetes`: their parts match each other, and the programs accept their arguments.
///
/// `scripts/check-manifests.sh` compares them with Kubernetes' own schemas.
@Suite(
  .onItsOwnThread,
  .enabled(
    if: PythonYAML.isInstalled, "python3-yaml isn't installed: scripts/bootstrap.sh --tests installs it"))
struct KubernetesManifestTests {
  private static let files = ["sluice.yaml", "cluster.yaml"]

  /// An object of a manifest, or a part of one.
  private struct Part {
    let value: Any

    subscript(_ name: String) -> Part { Part(value: (value as? [String: Any])?[name] ?? NSNull()) }
    var parts: [Part] { (value as? [Any] ?? []).map { Part(value: $0) } }
    var text: String? { value as? String }
    var number: Int? { value as? Int }
    var labels: [String: String] { value as? [String: String] ?? [:] }
    var keys: Set<String> { Set((value as? [String: Any] ?? [:]).keys) }
    var template: Part { self["spec"]["template"] }
    var pod: Part { template["spec"] }
    /// A port, given by its name or its number.
    var port: String? { text ?? number.map(String.init) }
  }

  private func objects(_ file: String) throws -> [Part] {
    let path = URL(filePath: #filePath).appending(path: "../../../packaging/kubernetes/\(file)").standardized
    let tool = try ChildProcess(
      PythonYAML.program,
      [
        "-c", "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))",
        path.path,
      ])
    #expect(try tool.waitForExit() == .code(0), "\(tool.messages)")
    let object = try JSONSerialization.jsonObject(with: Data(tool.standardOutput.text.utf8))
    return Part(value: object).parts
  }

  private func kind(_ kind: String, in objects: [Part]) -> [Part] {
    objects.filter { $0["kind"].text == kind }
  }

  private func output(_ program: String, _ arguments: String...) throws -> String {
    let process = try ChildProcess(BuiltProduct.path(program), arguments)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    return process.standardOutput.text
  }

  /// The broker's container of each pod that has one.
  private func brokers(_ objects: [Part]) -> [Part] {
    kind("StatefulSet", in: objects).flatMap { $0.pod["containers"].parts }.filter {
      $0["name"].text == "sluiced"
    }
  }

  @Test(arguments: files)
  func theBrokerKnowsItsImageAndItsSettings(_ file: String) throws {
    let version = try output("sluiced", "--version").dropFirst("sluiced ".count).prefix { $0 != "\n" }
    let help = try output("sluiced", "--help")
    let brokers = try brokers(objects(file))
    #expect(brokers.count == 1)
    for broker in brokers {
      #expect(broker["image"].text == "sluice:\(version)")
      let settings = broker["env"].parts.compactMap { $0["name"].text }.filter { $0.hasPrefix("SLUICED_") }
      #expect(settings.count > 3)
      for setting in settings {
        #expect(help.contains(try Regex("\\b\(setting)\\b")), "sluiced has no \(setting)")
      }
    }
  }

  @Test(arguments: files)
  func theBrokerListensWhereItsPortsAre(_ file: String) throws {
    for broker in try brokers(objects(file)) {
      let values = broker["env"].parts.reduce(into: [:]) { $0[$1["name"].text ?? ""] = $1["value"].text }
      func port(_ setting: String, default standard: Int) -> Int? {
        values[setting].map { Int($0.split(separator: ":").last ?? "") ?? 0 } ?? standard
      }
      let ports = broker["ports"].parts.reduce(into: [:]) {
        $0[$1["name"].text ?? ""] = $1["containerPort"].number
      }
      #expect(
        ports == [
          "clients": port("SLUICED_LISTEN", default: 7420), "admin": port("SLUICED_ADMIN", default: 7421),
        ])
    }
  }

  /// The container's liveness probe, run with a broker.
  @Test(arguments: files)
  func theProbesAreAnswered(_ file: String) throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    for container in try brokers(objects(file)) {
      for name in ["livenessProbe", "readinessProbe"] {
        let probe = container[name]
        let command = probe["exec"]["command"].parts.compactMap(\.text)
        if command.isEmpty {
          let path = try #require(probe["httpGet"]["path"].text, "\(name)")
          #expect(try RawHTTP.get(try #require(broker.adminAddress), path).status == 200)
        } else {
          #expect(command.first == "sluice")
          try broker.run(Array(command.dropFirst()))
        }
      }
    }
  }

  /// Services, policies, probes and mounts refer to names that the pods define.
  @Test(arguments: files)
  func namesAreThoseOfOtherParts(_ file: String) throws {
    let objects = try objects(file)
    let sets = kind("StatefulSet", in: objects)
    let services = kind("Service", in: objects)
    #expect(!sets.isEmpty && !services.isEmpty)
    func pods(_ selector: Part) -> [Part] {
      sets.filter { set in
        selector.labels.allSatisfy { set.template["metadata"]["labels"].labels[$0.key] == $0.value }
      }
    }
    func ports(_ set: Part) -> Set<String> {
      Set(
        set.pod["containers"].parts.flatMap { $0["ports"].parts }.flatMap { port in
          [port["name"].port, port["containerPort"].port].compactMap(\.self)
        })
    }
    for service in services {
      let selected = pods(service["spec"]["selector"])
      #expect(!selected.isEmpty, "\(service["metadata"]["name"].value)")
      for port in service["spec"]["ports"].parts {
        let target = try #require(port["targetPort"].port ?? port["port"].port)
        for set in selected { #expect(ports(set).contains(target), "\(target)") }
      }
    }
    for policy in kind("NetworkPolicy", in: objects) {
      let selected = pods(policy["spec"]["podSelector"]["matchLabels"])
      #expect(!selected.isEmpty)
      for port in policy["spec"]["ingress"].parts.flatMap({ $0["ports"].parts }) {
        for set in selected { #expect(ports(set).contains(try #require(port["port"].port))) }
      }
    }
    for set in sets {
      #expect(services.contains { $0["metadata"]["name"].text == set["spec"]["serviceName"].text })
      #expect(
        set["spec"]["selector"]["matchLabels"].labels == set.template["metadata"]["labels"].labels)
      let volumes = set.pod["volumes"].parts.compactMap { $0["name"].text }
      let claims = set["spec"]["volumeClaimTemplates"].parts.compactMap { $0["metadata"]["name"].text }
      for container in set.pod["containers"].parts {
        let mounts = container["volumeMounts"].parts.compactMap { $0["name"].text }
        #expect(Set(mounts) == Set(volumes + claims))
        for probe in ["livenessProbe", "readinessProbe"] {
          for test in ["httpGet", "tcpSocket"] where container[probe].keys.contains(test) {
            #expect(ports(set).contains(try #require(container[probe][test]["port"].port)))
          }
        }
      }
    }
  }
}

/// Python with a YAML parser.
private enum PythonYAML {
  static let program = "/usr/bin/python3"
  static let isInstalled: Bool = {
    guard let process = try? ChildProcess(program, ["-c", "import yaml"]) else { return false }
    return (try? process.waitForExit()) == .code(0)
  }()
}
