import Glibc
import TestSupport
import Testing

/// Every setting of `sluiced` that the reference file has at a value: the file can say another, the environment stands before the file, and an
/// option before both.
///
/// What holds is told by the log when the file is read again, see `ConfigurationTests`: of a setting that something else has said, nothing.
@Suite(.onItsOwnThread) struct SettingPrecedenceTests {
  private let directory: TemporaryDirectory
  private let settings: [WrittenSetting]
  private var file: String { directory.file("sluiced.toml") }
  private var data: String { directory.file("data") }

  init() throws {
    directory = try TemporaryDirectory()
    settings = try WrittenSetting.all()
    #expect(settings.count >= 60)
  }

  /// Starts a broker with this file.
  private func start(
    _ file: String, options: [String] = [], environment: [String: String] = [:]
  ) throws -> ChildProcess {
    try writeFile(self.file, Array(file.utf8))
    let process = try ChildProcess(
      BuiltProduct.path("sluiced"),
      ["--listen", "127.0.0.1:0", "--admin", "off", "--data", data, "--config", self.file] + options,
      environment: environment)
    _ = try process.standardOutput.line(startingWith: "sluiced ready")
    return process
  }

  /// What the log says of settings when the broker reads another file, which ends then.
  private func changes(_ broker: ChildProcess, to file: String) throws -> [String] {
    try writeFile(self.file, Array(file.utf8))
    broker.signal(SIGHUP)
    try eventually("the file is read again; \(broker.messages)") {
      broker.standardError.lines.contains { $0.contains("the configuration was read again") }
    }
    broker.stop()
    removeStore(data)
    return broker.standardError.lines.filter { $0.contains(" setting=") }
  }

  @Test func theFileSaysEach() throws {
    let broker = try start(WrittenSetting.file(settings, \.first))
    let lines = try changes(broker, to: WrittenSetting.file(settings, \.second))
    for setting in settings {
      let (before, after) = (setting.logged(setting.first), setting.logged(setting.second))
      let own = lines.filter { $0.contains(" setting=\(setting.key) ") }
      #expect(
        own.count == 1
          && (own[0].hasSuffix(" now=\(before) wanted=\(after)")
            || own[0].hasSuffix(" from=\(before) to=\(after)")),
        "\(setting.key): \(own)")
    }
    #expect(lines.count == settings.count)
  }

  @Test func theEnvironmentStandsBeforeTheFile() throws {
    let environment = settings.map { ($0.variable, $0.word($0.first)) }
    let broker = try start(
      WrittenSetting.file(settings, \.second), environment: Dictionary(uniqueKeysWithValues: environment))
    #expect(try changes(broker, to: "") == [])
  }

  @Test func anOptionStandsBeforeBoth() throws {
    // No setting can have that name: a reader of it would report that.
    let environment = settings.map { ($0.variable, "§") }
    let options = settings.map { "--\($0.option)=\($0.word($0.first))" }
    let broker = try start(
      WrittenSetting.file(settings, \.second), options: options,
      environment: Dictionary(uniqueKeysWithValues: environment))
    #expect(try changes(broker, to: "") == [])
  }
}
