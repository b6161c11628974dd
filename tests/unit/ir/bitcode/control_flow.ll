define {i64, float} @flow(i64 %a, i64 %b, float %x, half %h) {
entry:
  %c = icmp sgt i64 %a, %b
  br i1 %c, label %loop, label %end
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %acc = phi i64 [%a, %entry], [%s, %loop]
  %s = call i64 @sum(i64 %acc, i64 %i)
  %j = add nuw i64 %i, 1
  %d = icmp ult i64 %j, 5
  br i1 %d, label %loop, label %end
end:
  %v = phi i64 [%b, %entry], [%s, %loop]
  %f = call float @llvm.sqrt.f32(float %x)
  %g = fpext half %h to float
  %k = fmul fast float %f, %g
  switch i64 %v, label %out [ i64 3, label %three i64 4, label %out ]
three:
  br label %out
out:
  %z = phi float [%k, %end], [%k, %end], [0x3ff3333340000000, %three]
  %ve = insertelement <4 x i32> zeroinitializer, i32 7, i32 2
  %sh = shufflevector <4 x i32> %ve, <4 x i32> poison, <4 x i32> <i32 2, i32 1, i32 0, i32 3>
  %e = extractelement <4 x i32> %sh, i32 0
  %w = zext i32 %e to i64
  %y = xor i64 %w, %v
  %sel = select i1 %c, i64 %y, i64 -123456789012
  %fr = freeze i64 %sel
  %r = insertvalue {i64, float} undef, i64 %fr, 0
  %t = insertvalue {i64, float} %r, float %z, 1
  ret {i64, float} %t
}
define internal i64 @sum(i64 %a, i64 %b) {
  %s = add i64 %a, %b
  ret i64 %s
}
declare float @llvm.sqrt.f32(float)
