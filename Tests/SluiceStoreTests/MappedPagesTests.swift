import Glibc
import Testing

@testable import SluiceStore
@testable import SluiceStoreLMDB

@Suite struct MappedPagesTests {
  @Test func whatIsBehindTheEndOfItsFileIsKnownWithoutTouchingIt() throws {
    let path = "/tmp/sluice-pages-\(getpid())"
    let file = Glibc.open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    try #require(file >= 0)
    defer {
      Glibc.close(file)
      unlink(path)
    }
    let page = Int(getpagesize())
    try #require(ftruncate(file, page * 4) == 0)
    let mapped = try #require(mmap(nil, page * 4, PROT_READ, MAP_SHARED, file, 0))
    defer { munmap(mapped, page * 4) }
    let bytes = UnsafeRawBufferPointer(start: mapped, count: page * 4)
    #expect(MappedPages.load(bytes))
    #expect(MappedPages.load(UnsafeRawBufferPointer(rebasing: bytes[100..<page + 100])))
    #expect(MappedPages.load(UnsafeRawBufferPointer(rebasing: bytes[..<0])))
    try #require(ftruncate(file, page * 2) == 0)
    #expect(MappedPages.load(UnsafeRawBufferPointer(rebasing: bytes[..<(page * 2)])))
    // Kernels before 5.14 don't support this check.
    if madvise(mapped, page, 22) == 0 {
      #expect(!MappedPages.load(UnsafeRawBufferPointer(rebasing: bytes[(page + 10)..<(page * 2 + 1)])))
      #expect(!MappedPages.load(bytes))
    }
  }
}
