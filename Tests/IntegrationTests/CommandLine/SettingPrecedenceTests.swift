import Glibc
import TestSupport
import Testing

/// For every setting of `sluiced` with a value in the reference file: the file can set another value, the environment overrides the file, and an
/// option overrides both.
///
/// The log shows the effective source when the file is reread, see `ConfigurationTests`: it contains no line about a setting from another source.
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

  /// The log lines about settings when the broker rereads a changed file. Stops the broker.
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
    // No setting allows this value; reading one of these variables would cause an error.
    let environment = settings.map { ($0.variable, "§") }
    let options = settings.map { "--\($0.option)=\($0.word($0.first))" }
    let broker = try start(
      WrittenSetting.file(settings, \.second), options: options,
      environment: Dictionary(uniqueKeysWithValues: environment))
    #expect(try changes(broker, to: "") == [])
  }
}
