import SluiceBroker
import SluiceCommand
import TestSupport
import Testing

@testable import SluiceDaemon
@testable import SluiceTool

@Suite("Manual pages")
struct ManualTests {
  private static let pages =
    ManualCommand.pages + ManualChoice.allCases.map { ("\($0.rawValue).\($0 == .file ? 5 : 8)", $0.text) }

  @Test("there is one for each command, for both programs and for the file")
  func files() {
    let names = Self.pages.map(\.0)
    #expect(Set(names).count == names.count)
    for name in ["sluice.1", "sluice-pub.1", "sluice-topic.1", "sluiced.8", "sluiced.toml.5"] {
      #expect(names.contains(name))
    }
    #expect(names.count == Commands.all.count + 3)
  }

  @Test("each begins with its title and has its parts")
  func structure() throws {
    for (file, text) in Self.pages {
      let dot = try #require(file.lastIndex(of: "."))
      let title = file[..<dot].uppercased().split(separator: "-").joined(separator: "\\-")
      #expect(text.hasPrefix(".TH \"\(title)\" \"\(file[file.index(after: dot)...])\" "), "\(file)")
      for heading in ["NAME", "SEE ALSO"] { #expect(text.contains("\n.SH \"\(heading)\"\n"), "\(file)") }
      #expect(file.hasSuffix(".5") || text.contains("\n.SH \"SYNOPSIS\"\n"), "\(file)")
      #expect(text.hasSuffix("\n") && !text.contains("\n\n"), "\(file)")
    }
  }

  @Test("no line of text is taken for a request")
  func requests() {
    let known: Set = [".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".RS", ".RE", ".nf", ".fi", ".nh", ".ad"]
    for (file, text) in Self.pages {
      for line in text.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
        #expect(known.contains(String(line.prefix { $0 != " " })), "\(file): \(line)")
      }
    }
  }

  @Test("what roff would change is written so that it comes out as it is")
  func escapes() {
    var text = ManualText("a-b", section: 1, summary: "it's \"one\"")
    text.paragraph(".begins with a dot, has \\t, `x`, ~ and ^")
    text.entry("--x", "'quoted'")
    #expect(
      text.text.hasSuffix(
        """
        .SH "NAME"
        a\\-b \\- it\\(aqs \\(dqone\\(dq
        .PP
        \\&.begins with a dot, has \\et, \\(gax\\(ga, \\(ti and \\(ha
        .TP
        .B \\-\\-x
        \\(aqquoted\\(aq

        """))
  }

  @Test("every option, key and example of the help is there")
  func completeness() throws {
    func text(_ file: String) throws -> String { try #require(Self.pages.first { $0.0 == file }?.1) }
    func written(_ text: String) -> String {
      // As on the manual page.
      var page = ManualText("x", section: 1, summary: "")
      page.usage(text)
      return String(page.text.split(separator: "\n").last?.dropFirst(3) ?? "")
    }
    for kind in Commands.all {
      let text = try text("\(ManualPage.name(of: kind.page)).1")
      for page in [kind.page] + kind.page.commands {
        for option in page.options { #expect(text.contains(written("--\(option.name)")), "\(page.name)") }
        for example in page.examples { #expect(text.contains(written(example.line)), "\(page.name)") }
      }
    }
    let (daemon, file) = (try text("sluiced.8"), try text("sluiced.toml.5"))
    for setting in DaemonSettings.all() where setting.option.unavailable == nil {
      #expect(daemon.contains(".B \(written("--\(setting.option.name)"))"))
      if let key = setting.key { #expect(file.contains(".B \(written("\(key.name) = "))"), "\(key)") }
    }
  }

  @Test("the example in the page of the file can be used")
  func example() throws {
    let file = try ConfigurationFile("s.toml", Array(ConfigurationManual.example.utf8))
    let settings = try DaemonSettings(ParsedArguments(), file: file)
    #expect(settings.broker.topicRules.count == 1 && settings.data == "/var/lib/sluice")
  }

  @Test("man has nothing to say against them")
  func man() throws {
    let path = "/usr/bin/man"
    guard isExecutable(path), isExecutable("/usr/bin/troff") else {
      return print("there is no man here: skipped")
    }
    let directory = try TemporaryDirectory()
    for (name, text) in Self.pages {
      let file = directory.file(name)
      try write(text, to: file)
      let process = try ChildProcess(
        path, ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", file], output: .nothing)
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
      #expect(process.standardError.text == "", "\(name)")
    }
  }
}
