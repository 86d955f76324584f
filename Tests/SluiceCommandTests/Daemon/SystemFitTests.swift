import SluiceBroker
import SluiceCommand
import SluiceIO
import Testing

@testable import SluiceDaemon

@Suite("What the system has to give")
struct SystemFitTests {
  private func settings(_ arguments: String...) throws(UsageError) -> DaemonSettings {
    try DaemonSettings(ArgumentParser(DaemonPage.page()).parse(arguments, environment: { _ in nil }))
  }

  @Test("Connections fit into the files that may be open, and it is said when they don't")
  func descriptors() throws {
    let usual = try settings("--loops", "2")
    #expect(try SystemFit(usual, descriptors: 20_000, memory: nil).notes.isEmpty)
    #expect(try SystemFit(usual, descriptors: 0, memory: nil).limits.connections == 16_384)
    let small = try SystemFit(usual, descriptors: 1_024, memory: nil)
    #expect((600..<1_024).contains(small.limits.connections))
    #expect(small.notes.first?.possible == small.limits.connections)
    #expect(small.notes.first?.message.contains("LimitNOFILE") == true)
    // The reported maximum is possible.
    let possible = small.limits.connections
    let fitting = try settings("--loops", "2", "--max-connections", "\(possible)")
    #expect(try SystemFit(fitting, descriptors: 1_024, memory: nil).limits.connections == possible)
    let greedy = try settings("--loops", "2", "--max-connections", "\(possible + 1)")
    do {
      _ = try SystemFit(greedy, descriptors: 1_024, memory: nil)
      Issue.record("taken")
    } catch {
      #expect(
        error.description.hasPrefix("--max-connections: \(possible + 1) connections need 1025 open files"))
      #expect(error.description.contains("--max-connections \(possible)"))
    }
    #expect(throws: UsageError.self) { try SystemFit(usual, descriptors: 100, memory: nil) }
  }

  @Test("The ceiling of memory is three quarters of what there is, or what is said")
  func ceiling() throws {
    #expect(try SystemFit(settings(), descriptors: 0, memory: 4 << 30).limits.memory == 3 << 30)
    #expect(try SystemFit(settings(), descriptors: 0, memory: nil).limits.memory == 0)
    #expect(try SystemFit(settings("--memory", "0"), descriptors: 0, memory: 4 << 30).limits.memory == 0)
    #expect(try SystemFit(settings("--memory", "1GiB"), descriptors: 0, memory: 4).limits.memory == 1 << 30)
    #expect(
      try SystemFit(settings("--memory", "50%"), descriptors: 0, memory: 4 << 30).limits.memory == 2 << 30)
    for wrong in ["0%", "101%", "x%", "lots", "1000"] {
      #expect(throws: UsageError.self, "\(wrong)") { _ = try settings("--memory", wrong) }
    }
  }

  @Test("Memory is the machine's, or what the control group has, whichever is less")
  func memory() {
    var files = ["/proc/meminfo": "MemFree: 1 kB\nMemTotal:       16384 kB\n"]
    func available() -> UInt64? { SystemMemory.available { files[$0] } }
    #expect(available() == 16 << 20)
    files["/proc/self/cgroup"] = "0::/a.slice/b.service\n"
    files["/sys/fs/cgroup/a.slice/b.service/memory.max"] = "max\n"
    #expect(available() == 16 << 20)
    files["/sys/fs/cgroup/a.slice/memory.max"] = "8388608\n"
    #expect(available() == 8 << 20)
    files["/proc/self/cgroup"] = "3:cpu:/\n7:foo,memory:/docker/x\n"
    #expect(available() == 16 << 20)
    files["/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes"] = "4194304\n"
    #expect(available() == 4 << 20)
    files = ["/proc/meminfo": "nothing of use", "/proc/self/cgroup": "::\n0::\n:::::\n"]
    #expect(available() == nil)
  }
}
