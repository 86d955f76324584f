import Glibc
import TestSupport
import Testing

/// A broker with gateways for MQTT, WebSocket and HTTP, and Python programs that use it.
struct PythonStage {
  let broker: BrokerProcess
  private let ports: [String: String]

  /// - Parameter options: the broker's options.
  init(options: [String] = []) throws {
    broker = try BrokerProcess(
      options: [
        "--listen", "mqtt://127.0.0.1:0", "--listen", "ws://127.0.0.1:0", "--listen", "http://127.0.0.1:0",
      ] + options)
    var ports: [String: String] = [:]
    for address in broker.addresses {
      guard let mark = address.firstRange(of: "://") else { continue }
      ports[String(address[..<mark.lowerBound])] = String(address.split(separator: ":").last ?? "")
    }
    self.ports = ports
  }

  /// Runs a program, in which `MQTT_PORT`, `WS_PORT` and `HTTP_PORT` stand for the gateways' ports, and expects success.
  ///
  /// - Returns: the program's output.
  func run(_ program: String) throws -> String {
    let process = try start(program)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    return process.standardOutput.text
  }

  /// Starts a program with the variables `SLUICE` and `SLUICE_SERVER`, with which it runs `sluice` for this broker.
  func start(_ program: String) throws -> ChildProcess {
    let text = program.replacing("MQTT_PORT", with: ports["mqtt"] ?? "").replacing(
      "WS_PORT", with: ports["ws"] ?? ""
    ).replacing("HTTP_PORT", with: ports["http"] ?? "")
    let folder = try #require(PythonClients.folder)
    var environment = ChildProcess.environment(server: broker.address)
    environment["PYTHONPATH"] = folder
    environment["SLUICE"] = try BuiltProduct.path("sluice")
    return try ChildProcess("/usr/bin/env", ["python3", "-c", text], environment: environment)
  }
}

/// The folder of the modules that `scripts/door-clients.sh` installs.
enum PythonClients {
  static var folder: String? {
    // The path of this file is `Tests/IntegrationTests/Doors/PythonStage.swift`.
    let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let folder = "/\(repository)/.build/door-clients"
    return access("\(folder)/httpx", R_OK) == 0 ? folder : nil
  }
}
