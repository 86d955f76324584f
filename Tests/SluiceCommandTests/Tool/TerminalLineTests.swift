import Glibc
import SluiceCommand
import Testing

@testable import SluiceTool

@Suite("The line of a terminal that shows progress")
struct TerminalLineTests {
  /// The output of `body`.
  private func written(_ body: (TerminalLine, Int32) -> Void) -> String {
    var ends: [Int32] = [0, 0]
    #expect(unsafe pipe(&ends) == 0)
    body(TerminalLine(ends[1]), ends[1])
    close(ends[1])
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = unsafe read(ends[0], &bytes, bytes.count)
    close(ends[0])
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
  }

  @Test("it is removed before something else is printed, and once")
  func hidden() {
    let text = written { line, descriptor in
      line.clear()
      line.show("1 %")
      line.show("2 %")
      line.hidden { _ = Descriptor.write("found\n", to: descriptor) }
      line.hidden { _ = Descriptor.write("more\n", to: descriptor) }
      line.show("3 %")
      line.clear()
      line.clear()
    }
    let clear = "\r\u{1B}[K"
    #expect(text == "\(clear)1 %\(clear)2 %\(clear)found\nmore\n\(clear)3 %\(clear)")
  }
}
