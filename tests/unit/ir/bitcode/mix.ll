define {i64, i64} @mix(i64 %a, i64 %b) {
  %x = xor i64 %a, %b
  %s = call i64 @sum(i64 %a, i64 %b)
  %r = insertvalue {i64, i64} undef, i64 %x, 0
  %t = insertvalue {i64, i64} %r, i64 %s, 1
  ret {i64, i64} %t
}
define internal i64 @sum(i64 %a, i64 %b) {
  %s = add i64 %a, %b
  ret i64 %s
}
