import Glibc
import TestSupport
import Testing

@testable import SluiceCluster
@testable import SluiceDaemon

@Suite("What the log says of a cluster")
struct ClusterRecorderTests {
  private let directory: TemporaryDirectory
  private let output: LogOutput
  private let recorder: ClusterRecorder

  init() throws {
    directory = try TemporaryDirectory()
    output = LogOutput(open(directory.file("log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
    recorder = ClusterRecorder(Logger(level: .info, format: .text, to: output))
  }

  /// The lines so far, without their times.
  private func lines() throws -> [String] {
    output.flush()
    return String(decoding: try readFile(directory.file("log")), as: UTF8.self).split(separator: "\n")
      .map { String($0.dropFirst("1970-01-01T00:00:00.000Z ".count)) }
  }

  private func status(_ warnings: [EngineWarning], isConnected: Bool = true) -> ClusterStatus {
    var status = ClusterStatus(
      name: "b1", isMember: true, isSuspended: false, isEngineConnected: isConnected, engineServer: "n1",
      engineProblems: [], isEngineUnsafe: false, nodes: [], shards: [])
    status.engineWarnings = isConnected ? warnings : []
    return status
  }

  @Test(
    "what the engine lacks is logged once, whatever its figures and the connections to it, and that it is mended"
  )
  func engine() throws {
    for share in 90...92 {
      recorder.take(status([EngineWarning("full n1", "server n1 has used \(share) %")]))
      recorder.take(status([], isConnected: false))
    }
    #expect(try lines() == ["warning the engine has a problem cause=\"server n1 has used 90 %\""])
    recorder.take(status([]))
    recorder.take(status([]))
    #expect(try lines().dropFirst() == ["info    the engine's servers are complete again"])
  }

  @Test("another number of shards than the cluster's is a warning")
  func shards() throws {
    recorder.note(.shardsKept(64, wanted: 32))
    #expect(
      try lines() == [
        "warning --cluster-shards is ignored: the cluster exists, and keeps its number of shards shards=64 wanted=32"
      ])
  }
}
