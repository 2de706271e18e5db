; matmul_relu
;   p0  float32[256]
;   p1  float32[256]
;   p2  float32[256]
define void @matmul_relu(ptr %args, i64 %lo, i64 %hi) #0 {
entry:
  %p0 = load ptr, ptr %args, align 8
  %p1.slot = getelementptr ptr, ptr %args, i64 1
  %p1 = load ptr, ptr %p1.slot, align 8
  %p2.slot = getelementptr ptr, ptr %args, i64 2
  %p2 = load ptr, ptr %p2.slot, align 8
  %some = icmp slt i64 %lo, %hi
  br i1 %some, label %begin, label %done
begin:
  br label %for_g0

  ; for g0 in lo..hi  (global)
  for_g0:
    %g0 = phi i64 [ %lo, %begin ], [ %g0.next, %end_g1 ]
    br label %for_g1

    ; for g1 in 0..2  (global)
    for_g1:
      %g1 = phi i64 [ 0, %for_g0 ], [ %g1.next, %end_r0 ]
      br label %for_r0

      ; for r0 in 0..16  (reduce)
      for_r0:
        %r0 = phi i64 [ 0, %for_g1 ], [ %r0.next, %for_r0 ]
        %s_0 = phi <8 x float> [ zeroinitializer, %for_g1 ], [ %s_0.2, %for_r0 ]
        %s_8 = phi <8 x float> [ zeroinitializer, %for_g1 ], [ %s_8.2, %for_r0 ]
        %idx0 = mul i64 %g0, 32
        %idx1 = add i64 %idx0, %r0
        %p1_at0 = getelementptr inbounds float, ptr %p1, i64 %idx1
        %p1_v0 = load float, ptr %p1_at0, align 4
        %t0 = insertelement <8 x float> poison, float %p1_v0, i64 0
        %broadcast0 = shufflevector <8 x float> %t0, <8 x float> poison, <8 x i32> zeroinitializer
        %idx2 = mul i64 %r0, 16
        %idx3 = mul i64 %g1, 8
        %idx4 = add i64 %idx2, %idx3
        %p2_at0 = getelementptr inbounds float, ptr %p2, i64 %idx4
        %p2_v0 = load <8 x float>, ptr %p2_at0, align 4
        %s_0.2 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %broadcast0, <8 x float> %p2_v0, <8 x float> %s_0)
        %p1_at1 = getelementptr inbounds float, ptr %p1_at0, i64 16
        %p1_v1 = load float, ptr %p1_at1, align 4
        %t1 = insertelement <8 x float> poison, float %p1_v1, i64 0
        %broadcast1 = shufflevector <8 x float> %t1, <8 x float> poison, <8 x i32> zeroinitializer
        %s_8.2 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %broadcast1, <8 x float> %p2_v0, <8 x float> %s_8)
        %r0.next = add nuw nsw i64 %r0, 1
        %r0.more = icmp slt i64 %r0.next, 16
        br i1 %r0.more, label %for_r0, label %end_r0
    end_r0:
      %idx5 = mul i64 %g0, 32
      %idx6 = mul i64 %g1, 8
      %idx7 = add i64 %idx5, %idx6
      %p0_at0 = getelementptr inbounds float, ptr %p0, i64 %idx7
      %t2 = fcmp ogt <8 x float> zeroinitializer, %s_0.2
      %max0 = select <8 x i1> %t2, <8 x float> zeroinitializer, <8 x float> %s_0.2
      store <8 x float> %max0, ptr %p0_at0, align 4
      %p0_at1 = getelementptr inbounds float, ptr %p0_at0, i64 16
      %t3 = fcmp ogt <8 x float> zeroinitializer, %s_8.2
      %max1 = select <8 x i1> %t3, <8 x float> zeroinitializer, <8 x float> %s_8.2
      store <8 x float> %max1, ptr %p0_at1, align 4
      %g1.next = add nuw nsw i64 %g1, 1
      %g1.more = icmp slt i64 %g1.next, 2
      br i1 %g1.more, label %for_g1, label %end_g1
  end_g1:
    %g0.next = add nuw nsw i64 %g0, 1
    %g0.more = icmp slt i64 %g0.next, %hi
    br i1 %g0.more, label %for_g0, label %end_g0
end_g0:
  br label %done
done:
  ret void
}
attributes #0 = { nounwind "no-stack-arg-probe" }
